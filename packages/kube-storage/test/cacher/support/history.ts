/** The truth of a run: every write to a store, and what its readers must see. */
import type { KubeObject } from "../../../src/meta/object.ts";
import { attributesOf } from "./object.ts";

export interface Change {
  readonly revision: number;
  readonly key: string;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** A change with its texts, which many readers compare. */
interface Recorded extends Change {
  readonly afterText: string;
  readonly beforeText: string;
}

/** What a reader selects. */
export interface Interest {
  /** One object's key, or a prefix that ends with "/". */
  readonly key: string;
  /** The value that the label "color" must have; "" for any. */
  readonly color: string;
  /** The value that the field "spec.node" must have; "" for any. */
  readonly node: string;
}

export interface Seen {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly key: string;
  readonly revision: number;
  /** The object as JSON, with its resourceVersion. */
  readonly text: string;
}

export function isSelected(
  { key, color, node }: Interest,
  at: string,
  object: KubeObject,
): boolean {
  if (key.endsWith("/") ? !at.startsWith(key) : at !== key) return false;
  if (color === "" && node === "") return true;
  const { labels, fields } = attributesOf(object);
  return (
    (color === "" || labels["color"] === color) && (node === "" || fields["spec.node"] === node)
  );
}

/** An object's JSON with its revision. */
export function textAt(object: KubeObject, revision: number): string {
  const metadata = { ...object.metadata, resourceVersion: String(revision) };
  return JSON.stringify({ ...object, metadata });
}

export class History {
  revision = 1;
  compactRevision = 0;
  readonly changes: Recorded[] = [];
  readonly present = new Map<string, { object: KubeObject; revision: number }>();
  readonly #listeners = new Set<(change: Change) => void>();

  /** @param object undefined deletes */
  write(key: string, object: KubeObject | undefined): number {
    this.revision++;
    const before = this.present.get(key)?.object;
    const change: Recorded = {
      revision: this.revision,
      key,
      before,
      after: object,
      afterText: object === undefined ? "" : textAt(object, this.revision),
      beforeText: before === undefined ? "" : textAt(before, this.revision),
    };
    this.changes.push(change);
    if (object === undefined) this.present.delete(key);
    else this.present.set(key, { object, revision: this.revision });
    for (const listener of this.#listeners) listener(change);
    return this.revision;
  }

  /** A write to another resource. */
  writeElsewhere(): void {
    this.revision++;
  }

  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The selected objects at a revision, sorted by key. */
  stateAt(revision: number, interest: Interest): Seen[] {
    const state = new Map<string, Seen>();
    for (const { revision: at, key, after, afterText: text } of this.changes) {
      if (at > revision) break;
      if (after === undefined || !isSelected(interest, key, after)) state.delete(key);
      else state.set(key, { type: "ADDED", key, revision: at, text });
    }
    return [...state.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** What a watcher sees after a revision, in order. */
  eventsAfter(revision: number, interest: Interest): Seen[] {
    const seen: Seen[] = [];
    for (const { revision: at, key, before, after, beforeText, afterText } of this.changes) {
      if (at <= revision) continue;
      const was = before !== undefined && isSelected(interest, key, before);
      const is = after !== undefined && isSelected(interest, key, after);
      const type = is ? (was ? "MODIFIED" : "ADDED") : "DELETED";
      if (is || was) seen.push({ type, key, revision: at, text: is ? afterText : beforeText });
    }
    return seen;
  }
}
