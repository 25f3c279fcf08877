/** An audit log in memory. */
import { toUtf8 } from "@quorate/proto";
import type { AuditSink } from "../../src/audit/settings.ts";

/** A sink that passes each line on, without its end. */
export function lineSink(take: (line: string) => void): AuditSink & { isWritable: boolean } {
  let bytes = new Uint8Array(0);
  return {
    isWritable: true,
    write: take,
    space: (mostBytes) => {
      bytes = new Uint8Array(mostBytes);
      return { bytes, at: 0 };
    },
    wrote: (end) => take(toUtf8(bytes.subarray(0, end - 1))),
  };
}
