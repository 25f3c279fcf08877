/** Checks certificates: of the members' client and peer ports, and in the client's own files. */
import type { ShownCertificate } from "../observe/http.ts";
import { shellWord } from "../observe/text.ts";
import { type Finding, finding, type Severity } from "./finding.ts";
import type { ClusterView, MemberView } from "./view.ts";

const DAY_MS = 86_400_000;
/** OpenSSL's codes about validity dates, which have a check of their own. */
const ABOUT_DATES = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);

export function checkCertificates(view: ClusterView): Finding[] {
  const findings = view.members.flatMap((one) => [
    ...(one.certificate === undefined
      ? []
      : memberCertificate(view, one, one.certificate, "client")),
    ...(one.peerCertificate === undefined
      ? []
      : memberCertificate(view, one, one.peerCertificate, "peer")),
  ]);
  findings.push(...view.members.flatMap((one) => heldByMember(view, one)));
  for (const { flag, path, subject, validFromMs, validToMs } of view.files) {
    const found = dates(view, validFromMs, validToMs);
    if (found === undefined) continue;
    findings.push(
      finding(found.severity, "certificate", "client", {
        seen: `${flag} ${path} (${subject}) ${found.text}`,
        right: datesRight(view),
        next: "issue a new one; the present one:",
        run: [`openssl x509 -noout -dates -subject -in ${shellWord(path)}`],
      }),
    );
  }
  return findings;
}

const CERTIFICATE = "quorate_tls_certificate_not_after_seconds";
const LIST = "quorate_tls_crl_next_update_seconds";

/**
 * Files that no handshake on the ports shows: a member's CAs, its client certificates, revocation
 * lists.
 */
const HELD: readonly (readonly [metric: string, role: string, what: string, flag: string])[] = [
  [CERTIFICATE, "client_ca", "a CA that it trusts for clients", "--trusted-ca-file"],
  [CERTIFICATE, "peer_ca", "a CA that it trusts for members", "--peer-trusted-ca-file"],
  [CERTIFICATE, "peer_dialling", "its certificate for members", "--peer-client-cert-file"],
  [CERTIFICATE, "client_dialling", "its client certificate", "--client-cert-file"],
  [LIST, "client", "the revocation list for clients", "--client-crl-file"],
  [LIST, "peer", "the revocation list for members", "--peer-crl-file"],
];

function heldByMember(view: ClusterView, { label, metrics }: MemberView): Finding[] {
  return HELD.flatMap(([metric, role, what, flag]): Finding[] => {
    const isList = metric === LIST;
    const end = metrics?.value(metric, `role="${role}"`);
    if (end === undefined) return [];
    // Lists are usually renewed every few days: only an overdue one is a problem.
    const found =
      isList && end * 1000 > view.nowMs
        ? undefined
        : dates(view, Number.NEGATIVE_INFINITY, end * 1000);
    if (found === undefined) return [];
    return [
      finding(isList ? "warning" : found.severity, "certificate", label, {
        seen: isList
          ? `${what} was to be renewed at ${new Date(end * 1000).toISOString().replace(/\.\d+Z$/, "Z")}`
          : `${what} ${found.text}`,
        right: isList
          ? "a list that is not overdue: certificates revoked since are still accepted"
          : datesRight(view),
        next: `write a new one to the file of ${flag}: the member reloads it automatically`,
      }),
    ];
  });
}

function memberCertificate(
  view: ClusterView,
  { label, endpoint, member }: MemberView,
  shown: ShownCertificate,
  port: "client" | "peer",
): Finding[] {
  const url = port === "client" ? endpoint : (member?.peerURLs[0] ?? "");
  const what = `the certificate of its ${port} port (${shown.subject}, issued by ${shown.issuer})`;
  const address = url.replace(/^\w+:\/\//, "").replace(/\/$/, "");
  const look = `openssl s_client -connect ${shellWord(address)} </dev/null | openssl x509 -noout -text`;
  const ofPort = (severity: Severity, problem: string, right: string, next: string): Finding =>
    finding(severity, "certificate", label, {
      seen: `${what} ${problem}`,
      right,
      next,
      run: [look],
    });
  const findings: Finding[] = [];
  const found = dates(view, shown.validFromMs, shown.validToMs);
  if (found !== undefined) {
    const flags = port === "client" ? "--cert-file" : "--peer-cert-file";
    findings.push(
      ofPort(
        found.severity,
        found.text,
        datesRight(view),
        `issue a new one and write it to the file of ${flags}: the member reloads it automatically; the present one:`,
      ),
    );
  }
  // A client does not know which CA the members trust among themselves.
  if (
    port === "client" &&
    shown.chainProblem !== undefined &&
    !ABOUT_DATES.has(shown.chainProblem)
  ) {
    findings.push(
      ofPort(
        "error",
        `does not verify with the CA in --cacert (${shown.chainProblem})`,
        "all members' certificates come from the CA that clients trust",
        "issue one from that CA, or pass its CA in --cacert; the present one:",
      ),
    );
  }
  if (shown.nameProblem !== undefined) {
    findings.push(
      ofPort(
        "error",
        `is not valid for the name in ${url}: ${shown.nameProblem}`,
        "it contains every host name and address of the URL",
        "issue one with all names and addresses (quorate-certs create --hosts); the present one:",
      ),
    );
  }
  return findings;
}

function datesRight({ limits }: ClusterView): string {
  return `valid for at least another ${limits.certificateDays} days`;
}

/** The problem with the validity dates, if there is one. */
function dates(
  view: ClusterView,
  validFromMs: number,
  validToMs: number,
): { severity: Severity; text: string } | undefined {
  const leftMs = validToMs - view.nowMs;
  const iso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
  if (leftMs <= 0) return { severity: "error", text: `expired at ${iso(validToMs)}` };
  if (validFromMs > view.nowMs)
    return { severity: "error", text: `is not valid before ${iso(validFromMs)}` };
  if (leftMs > view.limits.certificateDays * DAY_MS) return undefined;
  const days = leftMs / DAY_MS;
  const left = days >= 2 ? `${Math.floor(days)} days` : `${Math.floor(leftMs / 3_600_000)} hours`;
  return { severity: "warning", text: `expires in ${left}, at ${iso(validToMs)}` };
}
