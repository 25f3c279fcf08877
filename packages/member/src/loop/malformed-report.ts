/**
 * What is said of an entry of the log that cannot be decoded: it has changed nothing, here and on
 * every other member.
 */
import type { Logger } from "@quorate/host";
import type { Counter } from "@quorate/metrics";
import type { raftpb } from "@quorate/proto";

export type MalformedReport = (entry: raftpb.Entry, error: Error) => void;

/** Counts such entries and logs each with its index. */
export function malformedReport(counter: Counter, logger: Logger): MalformedReport {
  return (entry, error) => {
    counter.add();
    logger.error("applied an entry that does not decode as an error; it changes nothing", {
      index: entry.index,
      term: entry.term,
      "entry-type": entry.type,
      bytes: entry.data.length,
      error: error.message,
    });
  };
}
