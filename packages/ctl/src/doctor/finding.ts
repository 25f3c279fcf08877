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

type Facts = Pick<Finding, "seen" | "right" | "next"> & Partial<Pick<Finding, "run">>;

/** A finding; `run` is empty where there is nothing to run. */
export const finding = (
  severity: Severity,
  check: string,
  member: string,
  { seen, right, next, run = [] }: Facts,
): Finding => ({ severity, check, member, seen, right, next, run });

export const problem = (check: string, member: string, facts: Facts): Finding =>
  finding("error", check, member, facts);

export const warning = (check: string, member: string, facts: Facts): Finding =>
  finding("warning", check, member, facts);

export function hasErrors(findings: readonly Finding[]): boolean {
  return findings.some(({ severity }) => severity === "error");
}

/** Something that could not be examined; no problem by itself. */
export interface Note {
  readonly member: string;
  readonly text: string;
}
