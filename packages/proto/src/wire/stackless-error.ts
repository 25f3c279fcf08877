/**
 * The base class of errors that refuse a request.
 *
 * The list of calls in `stack` would take twice as long to make as all else that refuses a request:
 * a client that sends requests which it need not finish could have a member do nothing else.
 */

/** V8's own field of Error, which other engines have under the same name. */
interface Stacks {
  stackTraceLimit: number;
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
