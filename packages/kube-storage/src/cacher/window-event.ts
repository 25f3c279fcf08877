/**
 * A change in the window, with the object before and after it. The forms in which watchers see it
 * are made once and shared by all of them.
 */
import { fromUtf8 } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";
import type { WatchEvent } from "../storage/interface.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import type { Element } from "./object-set.ts";

export class WindowEvent {
  readonly key: string;
  readonly resourceVersion: number;
  /** Undefined where the object was deleted. */
  readonly current: Element | undefined;
  /** Undefined where there was no object. */
  readonly previous: Element | undefined;
  /** Monotonic time. */
  readonly recordedMs: number;
  readonly sizeBytes: number;
  /** The object as it is when it leaves a selector, or is deleted. */
  #last: StoredObject | undefined;
  #added: WatchEvent | undefined;
  #modified: WatchEvent | undefined;
  #deleted: WatchEvent | undefined;

  /**
   * @param stored the object after the change; where it was deleted, its last state with the
   *   deletion's revision
   */
  constructor(
    stored: StoredObject,
    current: Element | undefined,
    previous: Element | undefined,
    recordedMs: number,
  ) {
    this.key = stored.key;
    this.resourceVersion = stored.resourceVersion;
    this.current = current;
    this.previous = previous;
    this.recordedMs = recordedMs;
    this.sizeBytes = stored.sizeBytes ?? 0;
    this.#last = current === undefined ? stored : undefined;
  }

  /**
   * How a watcher sees the change; undefined where it does not concern it.
   * @param matches whether the watcher selects an object
   */
  seenBy(matches: (element: Element) => boolean): WatchEvent | undefined {
    const { current, previous } = this;
    const after = current !== undefined && matches(current);
    const before = previous !== undefined && matches(previous);
    if (after) return before ? this.#asModified(current) : this.#asAdded(current);
    return before ? this.#asDeleted(previous) : undefined;
  }

  #asAdded({ stored }: Element): WatchEvent {
    this.#added ??= { type: "ADDED", object: stored };
    return this.#added;
  }

  #asModified({ stored }: Element): WatchEvent {
    this.#modified ??= { type: "MODIFIED", object: stored };
    return this.#modified;
  }

  #asDeleted({ stored }: Element): WatchEvent {
    this.#last ??= restamped(stored, this.resourceVersion);
    this.#deleted ??= { type: "DELETED", object: this.#last };
    return this.#deleted;
  }
}

/**
 * The object with another resourceVersion. Watchers see one that leaves their selector so: with its
 * last matching content, and the revision of the change that made it leave.
 */
function restamped(stored: StoredObject, resourceVersion: number): StoredObject {
  let json: Uint8Array | undefined;
  const object = (): KubeObject => {
    const present = stored.object();
    const metadata = { ...present.metadata, resourceVersion: String(resourceVersion) };
    return { ...present, metadata };
  };
  return {
    key: stored.key,
    resourceVersion,
    sizeBytes: stored.sizeBytes,
    object,
    json: () => {
      json ??= fromUtf8(JSON.stringify(object()));
      return json;
    },
  };
}
