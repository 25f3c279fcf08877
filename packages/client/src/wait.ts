/** A wait that the caller's signal or a time ends. */
import type { WaitOptions } from "./call-options.ts";
import { deadlineError } from "./errors.ts";
import type { ClientTimer } from "./link.ts";

export class Wait implements Disposable {
  /** Aborted with the reason of the caller's signal, or with ClientError DeadlineExceeded. */
  readonly signal: AbortSignal;
  readonly #end: () => void;

  /** Dispose of it when the wait is over. */
  constructor(timer: ClientTimer, { signal, timeoutMs }: WaitOptions) {
    const controller = new AbortController();
    const stop = (): void => controller.abort(signal?.reason);
    const forget =
      timeoutMs === undefined
        ? () => {}
        : timer.after(timeoutMs, () => controller.abort(deadlineError()));
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop);
    this.signal = controller.signal;
    this.#end = () => {
      forget();
      signal?.removeEventListener("abort", stop);
    };
  }

  [Symbol.dispose](): void {
    this.#end();
  }
}
