/**
 * Messages about failed calls: the endpoint, the reason, and on a terminal a hint. Standard output
 * stays etcdctl's, since scripts read it.
 */

import type { Io } from "@quorate/cli";
import type { ClientError } from "@quorate/client";
import { defined } from "@quorate/proto";

const advice: readonly (readonly [reason: RegExp, text: string])[] = [
  [
    /connection refused|no socket at|ECONNREFUSED/,
    "no member listens there; is the member running, and does --endpoints (or ETCDCTL_ENDPOINTS) name its client URL?",
  ],
  [
    /cannot be resolved|ENOTFOUND|EAI_AGAIN/,
    "the DNS resolver does not know the host; is it spelled right in --endpoints?",
  ],
  [
    /self.signed|unable to (?:get|verify)|UNABLE_TO|issuer certificate/,
    "the certificate comes from an unknown CA; pass the CA in --cacert",
  ],
  [
    /altnames|does not match certificate|Hostname\/IP/,
    "the certificate is not valid for this name; use one of the names or addresses in it",
  ],
  [
    /certificate has expired|CERT_HAS_EXPIRED/,
    "renew the member's certificate; quoratectl doctor shows the dates of all of them",
  ],
  [
    /certificate required|bad certificate|unknown ca|TLS alert/i,
    "the member requires a client certificate from its CA; pass --cert and --key",
  ],
  [
    /wrong version number|packet length too long|EPROTO|during the TLS handshake/,
    "one side uses TLS and the other does not; write https:// or http:// before the endpoint",
  ],
  [
    /the connection was closed$/,
    "the member may require TLS: write https:// before the endpoint and pass the CA in --cacert; or the endpoint is no member's client URL",
  ],
  [
    /does not speak gRPC/,
    "does --endpoints name a member's client URL, not its peer or metrics URL?",
  ],
  [
    /user name is empty/,
    "the cluster requires a user; pass --user NAME, and enter the password when prompted",
  ],
  [/permission denied/, "no role of this user permits it; see quoratectl user get NAME --detail"],
  [
    /no leader|leader failure|request timed out|leader changed/,
    "a majority of the members must be reachable; see quoratectl endpoint health --cluster",
  ],
  [
    /database space exceeded/,
    "compact, defragment and disarm the alarm; quoratectl doctor says how",
  ],
  [/too many requests|RESOURCE_EXHAUSTED/, "the member is overloaded; retry a little later"],
  [
    /no connection|no response in time|timed out at|no route to|deadline exceeded/,
    "no member responded in time; is the network up, or is --dial-timeout or --command-timeout too short?",
  ],
];

/** Usage errors that an environment variable causes. */
const usageAdvice: readonly (readonly [reason: RegExp, text: string])[] = [
  [
    /^conflicting environment variable "(\w+)"/,
    "for this command only, set the variable instead of the flag: $1=VALUE quoratectl ...; for all: unset $1",
  ],
  [
    /^snapshot must be requested to one selected node/,
    "name one member; if the variable is set, override it: ETCDCTL_ENDPOINTS=ENDPOINT quoratectl snapshot save FILE",
  ],
];

/** A hint about a usage error, or undefined. @param message the error's text */
export function usageHint(message: string): string | undefined {
  const found = usageAdvice.find(([pattern]) => pattern.test(message));
  if (found === undefined) return undefined;
  const [pattern, text] = found;
  return text.replaceAll("$1", defined(pattern.exec(message), "a match")[1] ?? "");
}

/** A hint for a failure, or undefined. @param reason the text of the failure */
export function adviceFor(reason: string): string | undefined {
  return advice.find(([pattern]) => pattern.test(reason))?.[1];
}

/** On a terminal, prints a hint about a failure, if there is one. */
export function hint(io: Io, reason: string): void {
  const advice = io.stderrIsTerminal ? adviceFor(reason) : undefined;
  if (advice !== undefined) io.stderr(`Hint: ${advice}\n`);
}

/**
 * Prints which endpoint failed and why; for a timeout, the error of the last attempt.
 * @param sequel appended to the reason: what the program does about it
 */
export function warnOfFailure(
  io: Io,
  { endpoint, message, cause }: ClientError,
  sequel = "",
): void {
  const reason = cause instanceof Error ? cause.message : message;
  io.stderr(`Warning: ${endpoint}: ${reason}${sequel}\n`);
  hint(io, reason);
}
