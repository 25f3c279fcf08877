/** The findings of the doctor. */

/** error: something does not work or data is at risk; warning: it may be soon. */
export type Severity = "error" | "warning";

export interface Finding {
  readonly severity: Severity;
  /** The subject of the check, such as "clock" or "certificate". */
  readonly check: string;
  /** The member's name, "client" for this machine and its files, or "cluster". */
  readonly member: string;
  readonly seen: string;
  /** The expected state. */
  readonly right: string;
  /** The next step as text; placeholders are in capitals. */
  readonly next: string;
  /** Command lines for a shell on this machine, to run unchanged and in this order. */
  readonly run: readonly string[];
}

export function hasErrors(findings: readonly Finding[]): boolean {
  return findings.some(({ severity }) => severity === "error");
}

/** Something that could not be examined; no problem by itself. */
export interface Note {
  readonly member: string;
  readonly text: string;
}
