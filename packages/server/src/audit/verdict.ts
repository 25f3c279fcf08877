/** How a call ended, in the words of the audit log. */
import { errorOf, GrpcStatus } from "@quorate/proto";
import type { Status } from "@quorate/rpc";

export type Verdict = "ok" | "denied" | "failed";

export const OK: Status = { code: GrpcStatus.OK, message: "" };

/** Errors with which etcd refuses an identity, whatever their code. */
const DENIALS: ReadonlySet<string> = new Set(
  (
    ["PermissionDenied", "UserEmpty", "AuthFailed", "InvalidAuthToken", "AuthOldRevision"] as const
  ).map((name) => errorOf(name).message),
);

/** Whether a call was served, refused for want of an identity or a permission, or failed. */
export function verdictOf({ code, message }: Status): Verdict {
  if (code === GrpcStatus.OK) return "ok";
  const isDenied = code === GrpcStatus.PERMISSION_DENIED || code === GrpcStatus.UNAUTHENTICATED;
  return isDenied || DENIALS.has(message) ? "denied" : "failed";
}

/** The status that an error ends a call with. */
export function statusOf(error: unknown): Status {
  const { code, message } = error as Partial<Status>;
  return {
    code: typeof code === "number" ? code : GrpcStatus.UNKNOWN,
    message: typeof message === "string" ? message : String(error),
  };
}

/** gRPC's codes by Go's names: "DeadlineExceeded" for DEADLINE_EXCEEDED. */
const NAMES: readonly string[] = Object.keys(GrpcStatus).map((name) => {
  if (name === "OK") return name;
  if (name === "CANCELLED") return "Canceled";
  const words = name.toLowerCase().split("_");
  return words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
});

/** The name of a code; a code beyond those that gRPC has is what gRPC makes of it. */
export function codeName(code: number): string {
  return NAMES[code] ?? "Unknown";
}
