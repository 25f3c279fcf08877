/**
 * Telling people of calls that failed: which endpoint, why, and on a terminal what to try; scripts
 * read what etcdctl writes.
 */
import type { ClientError } from "@quorate/client";
import type { Io } from "./io.ts";

const advice: readonly (readonly [reason: RegExp, text: string])[] = [
  [
    /connection refused|no socket at|ECONNREFUSED/,
    "nobody listens there; is the member running, and does --endpoints (or ETCDCTL_ENDPOINTS) name its client URL?",
  ],
  [
    /cannot be resolved|ENOTFOUND|EAI_AGAIN/,
    "the host's name is not known here; is it spelled right in --endpoints?",
  ],
  [
    /self.signed|unable to (?:get|verify)|UNABLE_TO|issuer certificate/,
    "the certificate comes from a CA that is not known here; name it in --cacert",
  ],
  [
    /altnames|does not match certificate|Hostname\/IP/,
    "the certificate is not made out for this name; use one of the names or addresses that it has",
  ],
  [
    /certificate has expired|CERT_HAS_EXPIRED/,
    "renew the member's certificate; quoratectl doctor shows the dates of all of them",
  ],
  [
    /certificate required|bad certificate|unknown ca|TLS alert/i,
    "the member wants to see a certificate of its CA; give --cert and --key",
  ],
  [
    /wrong version number|packet length too long|EPROTO|during the TLS handshake/,
    "one side talks TLS and the other does not; write https:// or http:// before the endpoint",
  ],
  [
    /the connection was closed$/,
    "it may want TLS: write https:// before the endpoint and name the CA in --cacert; or it is no member's client URL",
  ],
  [
    /does not speak gRPC/,
    "does --endpoints name a member's client URL, not its peer or metrics URL?",
  ],
  [
    /user name is empty/,
    "the cluster asks for users; give --user NAME, and the password when asked",
  ],
  [
    /permission denied/,
    "a role of this user has to allow it; see quoratectl user get NAME --detail",
  ],
  [
    /no leader|leader failure|request timed out|leader changed/,
    "most members have to be reachable to agree; see quoratectl endpoint health --cluster",
  ],
  [
    /database space exceeded/,
    "compact, defragment and disarm the alarm; quoratectl doctor says how",
  ],
  [
    /too many requests|RESOURCE_EXHAUSTED/,
    "the member has too much to do; try again a little later",
  ],
  [
    /no connection|no answer in time|nobody answers|no way to|deadline exceeded/,
    "nobody answered in time; is the network there, or is --dial-timeout or --command-timeout too short?",
  ],
];

/** Mistakes on a command line that a variable of the shell brings about. */
const usageAdvice: readonly (readonly [reason: RegExp, text: string])[] = [
  [
    /^conflicting environment variable "(\w+)"/,
    "for this command alone, put the value before it in place of the flag: $1=VALUE quoratectl ...; or for all: unset $1",
  ],
  [
    /^snapshot must be requested to one selected node/,
    "name one member; where the variable is set, before the command: ETCDCTL_ENDPOINTS=ENDPOINT quoratectl snapshot save FILE",
  ],
];

/** On a terminal, says what to do about a mistake on the command line, where that is known. */
export function usageHint(io: Io, message: string): void {
  const found = usageAdvice.find(([pattern]) => pattern.test(message));
  if (found === undefined || !io.stderrIsTerminal) return;
  const [pattern, text] = found;
  io.stderr(`Hint: ${text.replaceAll("$1", pattern.exec(message)![1] ?? "")}\n`);
}

/** A sentence that says what to try, or undefined. @param reason the text of the failure */
export function adviceFor(reason: string): string | undefined {
  return advice.find(([pattern]) => pattern.test(reason))?.[1];
}

/** On a terminal, says what to try about a failure, where that is known. */
export function hint(io: Io, reason: string): void {
  const advice = io.stderrIsTerminal ? adviceFor(reason) : undefined;
  if (advice !== undefined) io.stderr(`Hint: ${advice}\n`);
}

/**
 * Says which endpoint failed and why: where time was up, what happened last.
 * @param sequel what is done about it, after the reason
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
