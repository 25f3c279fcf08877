/** How a call ended, in the words of the audit log. */

import { NO_PASSWORD_TEXT, TOO_MANY_FAILURES } from "@quorate/member";
import { errorOf, GrpcCode } from "@quorate/proto";
import type { Status } from "@quorate/rpc";

export type Verdict = "ok" | "denied" | "failed";

export const OK: Status = { code: GrpcCode.OK, message: "" };

/** Errors with which an identity is refused, whatever their code. */
const DENIALS: ReadonlySet<string> = new Set([
  ...(
    ["PermissionDenied", "UserEmpty", "AuthFailed", "InvalidAuthToken", "AuthOldRevision"] as const
  ).map((name) => errorOf(name).message),
  NO_PASSWORD_TEXT,
  TOO_MANY_FAILURES,
]);

/** Whether a call was served, refused for want of an identity or a permission, or failed. */
export function verdictOf({ code, message }: Status): Verdict {
  if (code === GrpcCode.OK) return "ok";
  const isDenied = code === GrpcCode.PermissionDenied || code === GrpcCode.Unauthenticated;
  return isDenied || DENIALS.has(message) ? "denied" : "failed";
}

/** The status that an error ends a call with. */
export function statusOf(error: unknown): Status {
  const { code, message } = error as Partial<Status>;
  return {
    code: typeof code === "number" ? code : GrpcCode.Unknown,
    message: typeof message === "string" ? message : String(error),
  };
}

/** gRPC's codes by Go's names, such as DeadlineExceeded. */
const NAMES: readonly string[] = Object.keys(GrpcCode);

/** The name of a code; a code beyond those that gRPC has is what gRPC makes of it. */
export function codeName(code: number): string {
  return NAMES[code] ?? "Unknown";
}
