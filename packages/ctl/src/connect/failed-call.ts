/** Failed calls as the program's end, in etcdctl's words. */

import { Exit, ExitCode, type Io } from "@quorate/cli";
import type { ClientError } from "@quorate/client";
import { errorNameOf } from "@quorate/proto";
import { hint, warnOfFailure } from "./advice.ts";

/**
 * Converts a failed call to an Exit. For a timeout, first prints the error of the last attempt. A
 * failed connection's text names the endpoint.
 */
export function asExit(error: unknown, io: Io): unknown {
  if (!(error instanceof Error) || error.name !== "ClientError") return error;
  const { endpoint, grpcCode, cause, message } = error as ClientError;
  if (cause instanceof Error) warnOfFailure(io, error as ClientError);
  else hint(io, message);
  const isMissing = grpcCode === UNIMPLEMENTED && !REFUSED_STREAM.test(message);
  if (isMissing) return new Exit(ExitCode.error, unsupported(message));
  const name = errorNameOf(message) === undefined ? FOREIGN_CODES[grpcCode] : undefined;
  if (name === undefined) return new Exit(ExitCode.error, message);
  const place = name === "Unavailable" && endpoint !== undefined ? `${endpoint}: ` : "";
  return new Exit(ExitCode.error, `rpc error: code = ${name} desc = ${place}${message}`);
}

const UNIMPLEMENTED = 12;
/** What a server that has the method refuses with the same code. */
const REFUSED_STREAM = /^RangeStream does not support /;

/**
 * Rewrites the error of a missing method ("method UserList not implemented", "unknown method ...").
 */
function unsupported(message: string): string {
  const method = /method (?:"?\/?[\w.]+\/)?"?(\w+)/.exec(message)?.[1];
  if (method !== undefined && /^(?:User|Role|Auth)/.test(method)) {
    return (
      `this server does not support users and roles yet (${method} is not implemented); every client that can connect may read and write ` +
      "everything: require client certificates (--client-cert-auth with --trusted-ca-file)"
    );
  }
  return `this server does not support this command: ${message}`;
}

/**
 * Go's names of gRPC codes, for errors outside etcd's catalogue. Deadlines and cancellations have
 * texts of their own.
 */
const FOREIGN_CODES: Readonly<Record<number, string>> = {
  2: "Unknown",
  3: "InvalidArgument",
  5: "NotFound",
  6: "AlreadyExists",
  7: "PermissionDenied",
  8: "ResourceExhausted",
  9: "FailedPrecondition",
  10: "Aborted",
  11: "OutOfRange",
  12: "Unimplemented",
  13: "Internal",
  14: "Unavailable",
  15: "DataLoss",
  16: "Unauthenticated",
};
