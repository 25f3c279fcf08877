/** The truth of a run: every write to a store, and what its readers must see. */
import type { KubeObject } from "../../../src/meta/object.ts";
import { attributesOf } from "./object.ts";

export interface Change {
  readonly revision: number;
  readonly key: string;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
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
  const { labels, fields } = attributesOf(object);
  if (key.endsWith("/") ? !at.startsWith(key) : at !== key) return false;
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
  readonly changes: Change[] = [];
  readonly present = new Map<string, { object: KubeObject; revision: number }>();
  readonly #listeners = new Set<(change: Change) => void>();

  /** @param object undefined deletes */
  write(key: string, object: KubeObject | undefined): number {
    this.revision++;
    const change = {
      revision: this.revision,
      key,
      before: this.present.get(key)?.object,
      after: object,
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
    for (const change of this.changes) {
      if (change.revision > revision) break;
      const { key, after } = change;
      if (after === undefined || !isSelected(interest, key, after)) state.delete(key);
      else
        state.set(key, {
          type: "ADDED",
          key,
          revision: change.revision,
          text: textAt(after, change.revision),
        });
    }
    return [...state.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** What a watcher sees after a revision, in order. */
  eventsAfter(revision: number, interest: Interest): Seen[] {
    const seen: Seen[] = [];
    for (const { revision: at, key, before, after } of this.changes) {
      if (at <= revision) continue;
      const was = before !== undefined && isSelected(interest, key, before);
      const is = after !== undefined && isSelected(interest, key, after);
      if (is)
        seen.push({ type: was ? "MODIFIED" : "ADDED", key, revision: at, text: textAt(after, at) });
      else if (was) seen.push({ type: "DELETED", key, revision: at, text: textAt(before, at) });
    }
    return seen;
  }
}
