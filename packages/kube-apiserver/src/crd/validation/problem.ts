/** What a validation collects. */
import type { FieldError } from "@quorate/kube-storage";

/** An error, and the text by which the same one is not reported twice. */
export interface Problem {
  readonly text: string;
  readonly error: FieldError;
}

/** More errors of one object are not reported: a client reads the first ones. */
export const MAX_PROBLEMS = 1000;

/** Where the present value is, and how its errors are added. */
export interface Reporter {
  /** The path as texts name it. */
  readonly where: string;
  /** Adds an error at the value's field. */
  report(to: Problem[], text: string, make: (field: string, text: string) => FieldError): void;
  /** Adds an error that Kubernetes reports without a field. */
  reportPlain(to: Problem[], text: string): void;
}
