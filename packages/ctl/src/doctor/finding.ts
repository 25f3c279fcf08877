/** What the doctor finds. */

/** error: something does not work, or data is in danger; warning: it soon may be. */
export type Severity = "error" | "warning";

export interface Finding {
  readonly severity: Severity;
  /** What was looked at, such as "clock" or "certificate". */
  readonly check: string;
  /** The member's name, "client" for this machine and its files, "cluster" for all of it. */
  readonly member: string;
  readonly seen: string;
  /** What would be right. */
  readonly right: string;
  /** What to do next, in words; what has to be filled in stands in capitals. */
  readonly next: string;
  /** Command lines that a shell on this machine runs as they stand here, in this order. */
  readonly run: readonly string[];
}

/** Something that could not be looked at: no fault by itself. */
export interface Note {
  readonly member: string;
  readonly text: string;
}
