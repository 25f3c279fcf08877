/** When a broken stream is reopened, and after which pause. */
import type { BackoffOptions } from "@quorate/host";
import { GrpcCode } from "@quorate/proto";
import type { ClientError } from "./errors.ts";
import { LinkError } from "./link.ts";

/** Pauses before a broken stream is opened again. */
export const REOPEN: BackoffOptions = { firstMs: 100, mostMs: 2000 };

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
