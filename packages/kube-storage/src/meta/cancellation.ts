/** Whether the result of a call is still wanted. An AbortSignal is one. */
export interface Cancellation {
  readonly aborted: boolean;
  /** The error that a cancelled call rejects with. */
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}
