/** Certificates: of the members' client and peer ports, and in the client's own files. */
import type { ShownCertificate } from "../observe/http.ts";
import { shellWord } from "../observe/text.ts";
import type { Finding, Severity } from "./finding.ts";
import type { ClusterView, MemberView } from "./view.ts";

const DAY_MS = 86_400_000;
/** OpenSSL's codes that speak of dates, which are found by themselves. */
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
    findings.push({
      severity: found.severity,
      check: "certificate",
      member: "client",
      seen: `${flag} ${path} (${subject}) ${found.text}`,
      right: datesRight(view),
      next: "have a new one issued; the present one:",
      run: [`openssl x509 -noout -dates -subject -in ${shellWord(path)}`],
    });
  }
  return findings;
}

/**
 * What a member holds and nobody sees in a handshake: authorities, the certificates that it shows
 * when it calls, revocation lists.
 */
const HELD: readonly (readonly [metric: string, role: string, what: string, flag: string])[] = [
  [
    "quorate_tls_certificate_not_after_seconds",
    "client_ca",
    "an authority that it trusts for clients",
    "--trusted-ca-file",
  ],
  [
    "quorate_tls_certificate_not_after_seconds",
    "peer_ca",
    "an authority that it trusts for members",
    "--peer-trusted-ca-file",
  ],
  [
    "quorate_tls_certificate_not_after_seconds",
    "peer_dialling",
    "the certificate that it shows to members",
    "--peer-client-cert-file",
  ],
  [
    "quorate_tls_certificate_not_after_seconds",
    "client_dialling",
    "the certificate that it shows when it calls",
    "--client-cert-file",
  ],
  [
    "quorate_tls_crl_next_update_seconds",
    "client",
    "the revocation list for clients",
    "--client-crl-file",
  ],
  [
    "quorate_tls_crl_next_update_seconds",
    "peer",
    "the revocation list for members",
    "--peer-crl-file",
  ],
];

function heldByMember(view: ClusterView, { label, metrics }: MemberView): Finding[] {
  return HELD.flatMap(([metric, role, what, flag]): Finding[] => {
    const isList = metric.includes("_crl_");
    const end = metrics?.value(metric, `role="${role}"`);
    if (end === undefined) return [];
    // A list is renewed every few days as a rule: only one that is overdue is a fault.
    const found =
      isList && end * 1000 > view.nowMs
        ? undefined
        : dates(view, Number.NEGATIVE_INFINITY, end * 1000);
    if (found === undefined) return [];
    return [
      {
        severity: isList ? "warning" : found.severity,
        check: "certificate",
        member: label,
        seen: isList
          ? `${what} was to be renewed at ${new Date(end * 1000).toISOString().replace(/\.\d+Z$/, "Z")}`
          : `${what} ${found.text}`,
        right: isList
          ? "a list that is not overdue: what was revoked since is still taken"
          : datesRight(view),
        next: `put a new one where ${flag} points: the member reads it by itself`,
        run: [],
      },
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
  const finding = (severity: Severity, problem: string, right: string, next: string): Finding => ({
    severity,
    check: "certificate",
    member: label,
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
      finding(
        found.severity,
        found.text,
        datesRight(view),
        `issue a new one and put it where ${flags} points: the member reads it by itself; the present one:`,
      ),
    );
  }
  // Which authority the members trust among themselves, a client does not know.
  if (
    port === "client" &&
    shown.chainProblem !== undefined &&
    !ABOUT_DATES.has(shown.chainProblem)
  ) {
    findings.push(
      finding(
        "error",
        `does not come from the authority that --cacert names (${shown.chainProblem})`,
        "all members' certificates come from the authority that clients trust",
        "issue one from the right authority, or name the authority that it is from in --cacert; the present one:",
      ),
    );
  }
  if (shown.nameProblem !== undefined) {
    findings.push(
      finding(
        "error",
        `is not for the name in ${url}: ${shown.nameProblem}`,
        "it names every host and address that the URL may have",
        "issue one with all names and addresses (quorate-certs create --hosts); the present one:",
      ),
    );
  }
  return findings;
}

function datesRight({ limits }: ClusterView): string {
  return `valid for another ${limits.certificateDays} days at least`;
}

/** What is wrong with the dates, if anything is. */
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
