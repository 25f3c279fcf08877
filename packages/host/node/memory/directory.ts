/** A directory of a MemoryDisk, with the names that are durable and those that are not yet. */
import type { Random } from "../../src/random.ts";
import { MemoryFileContent } from "./file.ts";

/** A file or a directory. */
export type MemoryNode = Directory | MemoryFileContent;

export class Directory {
  entries = new Map<string, MemoryNode>();
  readonly #durable = new Map<string, MemoryNode>();
  #changes: (readonly [name: string, node: MemoryNode | undefined])[][] = [];

  change(...changes: [name: string, node: MemoryNode | undefined][]): void {
    this.#changes.push(changes);
    for (const [name, node] of changes) put(this.entries, name, node);
  }

  /**
   * The cost depends on the changes since the last sync, not on the size of the directory: a log
   * may have thousands of segments.
   */
  sync(): void {
    this.#makeDurable(this.#changes.length);
    this.#changes = [];
  }

  /** Keeps the names that survive the crash; they are durable from then on. */
  crash(random: Random): void {
    this.#makeDurable(random.below(this.#changes.length + 1));
    this.#changes = [];
    this.entries = new Map(this.#durable);
  }

  #makeDurable(count: number): void {
    for (const changes of this.#changes.slice(0, count)) {
      for (const [name, node] of changes) put(this.#durable, name, node);
    }
  }
}

function put(map: Map<string, MemoryNode>, name: string, node: MemoryNode | undefined): void {
  if (node) map.set(name, node);
  else map.delete(name);
}

/** The parts of a path, without "." and "..". */
export function splitPath(path: string): string[] {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts;
}

/** Bytes of a file, or of all files below a directory. */
export function sizeOf(node: MemoryNode): number {
  if (node instanceof MemoryFileContent) return node.sizeBytes;
  let total = 0;
  for (const child of node.entries.values()) total += sizeOf(child);
  return total;
}
