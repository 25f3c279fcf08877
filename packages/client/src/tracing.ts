/** How programs that observe a client see its calls. node/connect.ts publishes them. */

/** A call that is observed; the client fills it in as the call goes on. */
export interface CallTrace {
  /** The gRPC path of the method, such as "/etcdserverpb.KV/Put". */
  readonly method: string;
  /** The endpoint of the present attempt, then of the last one. */
  endpoint: string | undefined;
  /** How often it was tried. */
  attempts: number;
}

/** Runs what is observed, and returns its result. */
export interface Tracer {
  /** A unary call with its retries. */
  call<T>(trace: CallTrace, run: () => Promise<T>): Promise<T>;
  /** The opening of a stream of watches, at first and after each break. */
  watch<T>(trace: CallTrace, run: () => Promise<T>): Promise<T>;
}

/** Of clients that nobody observes. */
export const unobserved: Tracer = {
  call: (_trace, run) => run(),
  watch: (_trace, run) => run(),
};
