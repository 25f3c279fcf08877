/** When a broken stream is reopened, and after which pause. */
import { GrpcCode } from "@quorate/proto";
import type { ClientError } from "./errors.ts";
import { LinkError } from "./link.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2000;

/** Whether another member, or a retry a little later, may succeed. */
export function mayResume(error: ClientError): boolean {
  if (error.cause instanceof LinkError && error.cause.isUntrusted) return false;
  return (
    error.grpcCode === GrpcCode.Unavailable ||
    error.grpcCode === GrpcCode.Internal ||
    isStaleToken(error.message)
  );
}

/**
 * Whether an error text means that the token is invalid or expired: with a new token the same
 * request may succeed.
 */
export function isStaleToken(message: string): boolean {
  return /etcdserver: (?:invalid auth token|revision of auth store is old)$/.test(message);
}

/** Pauses that double from 100 ms to 2 s. */
export class Backoff {
  #nextMs = FIRST_PAUSE_MS;

  /** The length of the next pause. */
  next(): number {
    const pauseMs = this.#nextMs;
    this.#nextMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    return pauseMs;
  }

  /** Called after a success: the next pause is the shortest. */
  reset(): void {
    this.#nextMs = FIRST_PAUSE_MS;
  }
}
