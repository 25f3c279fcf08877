/** The history that automatic compaction keeps. */

import type { AutoCompaction } from "@quorate/member";
import { ConfigError, checked, contradiction, parseDurationMs } from "@quorate/member";
import { quoteText } from "@quorate/proto";
import type { OptionValues } from "./options.ts";

/** Throws ConfigError. */
export function resolveCompaction(values: OptionValues): AutoCompaction {
  const mode = values["auto-compaction-mode"];
  const text = values["auto-compaction-retention"];
  if (/^[+]?[0-9]+$/.test(text)) {
    const count = Number(text);
    if (!Number.isSafeInteger(count))
      throw new ConfigError(
        "BadValue",
        `error parsing CompactionRetention: --auto-compaction-retention: ${quoteText(text)} is out of range`,
      );
    if (count === 0) return { mode: "off" };
    return mode === "revision"
      ? { mode, retentionRevisions: count }
      : { mode: "periodic", retentionMs: count * 3_600_000 };
  }
  if (mode === "revision") {
    throw new ConfigError(
      "BadValue",
      `error parsing CompactionRetention: --auto-compaction-retention: revision mode takes a number of revisions, not ${quoteText(text)}`,
    );
  }
  let retentionMs = 0;
  checked("error parsing CompactionRetention: --auto-compaction-retention: ", "BadValue", () => {
    retentionMs = text === "" ? 0 : parseDurationMs(text);
  });
  if (retentionMs < 0)
    contradiction(`--auto-compaction-retention must not be negative (set to ${text})`);
  return retentionMs === 0 ? { mode: "off" } : { mode: "periodic", retentionMs };
}
