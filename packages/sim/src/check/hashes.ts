/**
 * SIM-7 while a cluster runs: members that have applied the same index have equal stores. At every
 * index of a kind a member's keys are compared with the model's, and at fewer its HashKV, which
 * covers all revisions that are left, with those of the others and with its own, should it come by
 * that index again after a restart.
 */
import type { Store } from "@quorate/store";
import { type Safety, violate } from "./safety.ts";

const CONTENT_EVERY_ENTRIES = 64;
/** A hash reads all that is left of the history, so in a long run there are fewer. */
const HASH_EVERY_ENTRIES = 128;
const HASH_SELDOM_FROM_ENTRY = 1024;
const HASH_SELDOM_ENTRIES = 2048;

export class HashCheck {
  readonly #safety: Safety;
  /** By index, and by how far the member had compacted, for a hash depends on that. */
  readonly #known = new Map<string, { readonly hash: number; readonly by: string }>();
  /** Hashes that were compared with one that was known. */
  compared = 0;

  constructor(safety: Safety) {
    this.#safety = safety;
  }

  /**
   * A member has applied `index`. Throws a Violation, or reports one to `fail` later.
   * @param isSound asked when the hash is there: whether the store was left alone meanwhile
   */
  applied(
    name: string,
    store: Store,
    index: number,
    fail: (error: unknown) => void,
    isSound: () => boolean = () => true,
  ): void {
    if (index % CONTENT_EVERY_ENTRIES !== 0) return;
    const wrong = this.#safety.contentDiffers(store);
    if (wrong !== undefined) violate("SIM-7", `${name} after entry ${index}: ${wrong}`);
    if (index % (index <= HASH_SELDOM_FROM_ENTRY ? HASH_EVERY_ENTRIES : HASH_SELDOM_ENTRIES) !== 0)
      return;
    // Of this revision, though its turn may come later: hashes are computed one at a time.
    store.mvcc.hashKV(store.mvcc.currentRevision).then(
      ({ hash, compactRevision }) => {
        if (!isSound()) return;
        const key = `${index} ${compactRevision}`;
        const known = this.#known.get(key);
        if (known === undefined) this.#known.set(key, { hash, by: name });
        else {
          this.compared++;
          if (known.hash === hash) return;
          const at = `after entry ${index}, compacted ${compactRevision}`;
          try {
            violate("SIM-7", `${name} has hash ${hash} ${at}, and ${known.by} had ${known.hash}`);
          } catch (error) {
            fail(error);
          }
        }
      },
      // Its process is gone, or its store is; or it has compacted that revision, or has too many
      // hashes waiting.
      () => {},
    );
  }
}
