/** What every call takes besides its own options. */
import { BOUND, checkOptions, FLAG, type Kind, type Shape } from "@quorate/host";

/** What ends a wait. */
export interface WaitOptions {
  /** Ends it when aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Ends it with DeadlineExceeded after so many milliseconds. */
  readonly timeoutMs?: number | undefined;
}

/**
 * What every call takes. An aborted call rejects with ClientError: code Canceled, the signal's
 * reason as `cause`, and `mayHaveHappened` as for any failure. `timeoutMs` is the time of the call
 * with all its retries, by default that of connect().
 */
export interface CallOptions extends WaitOptions {
  /**
   * Whether to send it again after a failure that leaves open whether it was executed. By default
   * only reads are: a write would be made twice.
   */
  readonly repeat?: boolean | undefined;
}

/** A parameter that ends a wait. */
const SIGNAL: Kind = {
  name: "an AbortSignal",
  is: (value) => value instanceof AbortSignal,
};

export const WAIT_SHAPE: Shape<WaitOptions> = { signal: SIGNAL, timeoutMs: BOUND };
export const CALL_SHAPE: Shape<CallOptions> = { ...WAIT_SHAPE, repeat: FLAG };

/**
 * Separates the options of a call into its own and those of any call. Throws TypeError for a wrong
 * one. @param shape of both
 */
export function splitOptions<T extends object>(
  call: string,
  options: T & CallOptions,
  shape: Shape<T & CallOptions>,
): readonly [own: Omit<T, keyof CallOptions>, call: CallOptions] {
  checkOptions<T & CallOptions>(call, options, shape);
  const { signal, timeoutMs, repeat, ...own } = options;
  return [own, { signal, timeoutMs, repeat }];
}
