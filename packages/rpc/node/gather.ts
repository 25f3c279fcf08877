/** Writing what a turn has collected. */
import type { Writable } from "node:stream";

/** Writes the chunks with one system call. */
export function writeTogether(target: Writable, chunks: readonly Uint8Array[]): void {
  if (chunks.length === 1) target.write(chunks[0]);
  else if (chunks.length > 1) {
    target.cork();
    for (const chunk of chunks) target.write(chunk);
    target.uncork();
  }
}
