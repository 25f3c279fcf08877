/** When a stream that broke is opened again, and how long is waited before. */
import { GrpcStatus } from "@quorate/proto";
import type { ClientError } from "./errors.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2000;

/** True for what another member, or the same one a little later, may do better. */
export function mayResume(error: ClientError): boolean {
  return (
    error.grpcCode === GrpcStatus.UNAVAILABLE ||
    error.grpcCode === GrpcStatus.INTERNAL ||
    isStaleToken(error.message)
  );
}

/**
 * True for a text that says that the token is not, or no longer, good: with a new one the same
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

  /** Something succeeded: the next pause is the shortest. */
  reset(): void {
    this.#nextMs = FIRST_PAUSE_MS;
  }
}
