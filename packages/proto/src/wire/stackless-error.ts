/**
 * The base class of errors that say in their code and text what is wrong with something that came
 * from outside.
 *
 * The list of calls in `stack` would take twice as long to make as all else that refuses a request:
 * a client that sends requests which it need not finish could have a member do nothing else. A
 * defect of the program has one (invariant.ts).
 */

/** V8's own fields of Error, which other engines have under the same names. */
interface Stacks {
  stackTraceLimit: number;
  captureStackTrace(error: Error): void;
}

const stacks = Error as ErrorConstructor & Stacks;

export class StacklessError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    const limit = stacks.stackTraceLimit;
    stacks.stackTraceLimit = 0;
    super(message, options);
    stacks.stackTraceLimit = limit;
  }
}

/** Gives an error the list of calls that led here. */
export function addStack(error: Error): void {
  stacks.captureStackTrace(error);
}
