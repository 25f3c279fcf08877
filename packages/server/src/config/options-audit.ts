/** The options of the audit log. */
import { durationOption, listOption, stringOption, uintOption } from "./option.ts";

export const auditOptions = {
  "audit-log": stringOption(
    "",
    "Write a JSON line for each call of a client here: a path of a file or of a named " +
      "pipe, or '-' for standard output. Empty: no audit log.",
  ),
  "audit-level": stringOption(
    "metadata",
    "What a line has: 'metadata', or 'request' for what the request asks for as well. " +
      "Values are hashed; passwords and tokens are in no line.",
    { allowed: ["metadata", "request"] },
  ),
  "audit-prefixes": listOption(
    "",
    "Comma-separated prefixes of keys: a call about keys is logged only if one of its keys " +
      "has one of them. Empty: every call is logged.",
  ),
  "audit-read-sampling": uintOption(
    1,
    "Of reads that succeed every Nth is written; refused and failed ones always are.",
  ),
  "audit-on-failure": stringOption(
    "drop",
    "While the audit log cannot be written: 'drop' drops and counts lines once the queue " +
      "is full, 'refuse' refuses writes of clients until it can.",
    { allowed: ["drop", "refuse"] },
  ),
  "audit-max-bytes": uintOption(
    104_857_600,
    "A file of this size is renamed, with the time at the end of its name, and a new file " +
      "is started (0: never).",
    { unit: "bytes" },
  ),
  "audit-max-age": durationOption(
    86_400_000,
    "A file of this age is renamed, and a new file is started (0: never).",
  ),
  "audit-keep-files": uintOption(10, "How many renamed files stay; the oldest is deleted."),
};
