/** The latest changes of each resource, from which stale lists choose. */
import type { ServedResource, Watch } from "@quorate/kube-storage";
import { EVERYTHING } from "@quorate/kube-storage";
import { systemContext } from "../informers/system-context.ts";

/** A list is at most so many changes of its resource behind. */
export const MAX_STALE_CHANGES = 64;
/** Resources that are followed; of further ones no list is stale. */
export const MAX_FOLLOWED = 512;

interface Followed {
  /** Revisions of its changes, in order; the last one is its present state. */
  readonly revisions: number[];
  watch: Watch | "opening" | undefined;
}

const PREDICATE = { label: EVERYTHING, field: EVERYTHING, limit: 0, continueToken: "" };

export class Revisions {
  readonly #followed = new Map<string, Followed>();
  #isStopped = false;

  /** Follows the resource from now on, if it does not yet. */
  follow(resource: ServedResource): void {
    const key = keyOf(resource);
    let followed = this.#followed.get(key);
    if (followed?.watch !== undefined || this.#isStopped) return;
    if (resource.storage.watch === undefined || resource.subresource !== "") return;
    if (followed === undefined) {
      if (this.#followed.size >= MAX_FOLLOWED) return;
      followed = { revisions: [], watch: undefined };
      this.#followed.set(key, followed);
    }
    followed.watch = "opening";
    void this.#open(resource, followed);
  }

  /** The revisions of the resource's changes, from old to new. */
  of(resource: ServedResource): readonly number[] {
    return this.#followed.get(keyOf(resource))?.revisions ?? [];
  }

  stop(): void {
    this.#isStopped = true;
    for (const { watch } of this.#followed.values()) if (typeof watch === "object") watch.stop();
  }

  async #open(resource: ServedResource, followed: Followed): Promise<void> {
    const over = (): void => {
      followed.watch = undefined;
    };
    try {
      const watch = await resource.storage.watch?.(systemContext(), {
        predicate: { ...PREDICATE, allowWatchBookmarks: false },
        resourceVersion: "0",
        resourceVersionMatch: "",
      });
      followed.watch = watch;
      watch?.start({
        event: ({ object }) => {
          const { revisions } = followed;
          const { resourceVersion } = object;
          // The objects that there are come in the order of their names.
          const at = revisions.findLastIndex((one) => one <= resourceVersion);
          if (revisions[at] !== resourceVersion) revisions.splice(at + 1, 0, resourceVersion);
          if (revisions.length > MAX_STALE_CHANGES + 1) revisions.shift();
          return true;
        },
        ended: over,
      });
      if (this.#isStopped) watch?.stop();
    } catch {
      // It is opened again at the next request.
      over();
    }
  }
}

function keyOf({ group, resource }: ServedResource): string {
  return `${group}/${resource}`;
}
