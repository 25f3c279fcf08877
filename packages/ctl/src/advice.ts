/** What to try when a call fails for a reason that people know how to mend. Shown on a terminal only: scripts read what etcdctl writes. */

const advice: readonly (readonly [reason: RegExp, text: string])[] = [
  [/ECONNREFUSED|ENOENT/, "nobody listens there; is the member running, and does --endpoints (or ETCDCTL_ENDPOINTS) name its client URL?"],
  [/ENOTFOUND|EAI_AGAIN|[Nn]ame resolution/, "the host's name is not known here; is it spelled right in --endpoints?"],
  [
    /self.signed|unable to (?:get|verify)|UNABLE_TO|issuer certificate/,
    "the certificate comes from a CA that is not known here; name it in --cacert",
  ],
  [
    /altnames|does not match certificate|Hostname\/IP/,
    "the certificate is not made out for this name; use one of the names or addresses that it has",
  ],
  [/certificate has expired|CERT_HAS_EXPIRED/, "renew the member's certificate; quoratectl doctor shows the dates of all of them"],
  [/certificate required|bad certificate|unknown ca|TLS alert/i, "the member wants to see a certificate of its CA; give --cert and --key"],
  [
    /wrong version number|packet length too long|EPROTO|before secure TLS/,
    "one side talks TLS and the other does not; write https:// or http:// before the endpoint",
  ],
  [/user name is empty/, "the cluster asks for users; give --user NAME, and the password when asked"],
  [/permission denied/, "a role of this user has to allow it; see quoratectl user get NAME --detail"],
  [
    /no leader|leader failure|request timed out|leader changed/,
    "most members have to be reachable to agree; see quoratectl endpoint health --cluster",
  ],
  [/database space exceeded/, "compact, defragment and disarm the alarm; quoratectl doctor says how"],
  [/too many requests|RESOURCE_EXHAUSTED/, "the member has too much to do; try again a little later"],
  [
    /no connection to .* in time|deadline exceeded/,
    "nobody answered in time; is the network there, or is --dial-timeout or --command-timeout too short?",
  ],
];

/** A sentence that says what to try, or undefined. @param reason the text of the failure */
export function adviceFor(reason: string): string | undefined {
  return advice.find(([pattern]) => pattern.test(reason))?.[1];
}
