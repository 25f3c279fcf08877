/** Certificates: of the members' client and peer ports, and in the client's own files. */
import type { ShownCertificate } from "../observe/http.ts";
import type { Finding, Severity } from "./finding.ts";
import { type ClusterView, ctl, type MemberView } from "./view.ts";

const DAY_MS = 86_400_000;
/** OpenSSL's codes that speak of dates, which are found by themselves. */
const ABOUT_DATES = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);

export function checkCertificates(view: ClusterView): Finding[] {
  const findings = view.members.flatMap((one) => [
    ...(one.certificate === undefined ? [] : memberCertificate(view, one, one.certificate, "client")),
    ...(one.peerCertificate === undefined ? [] : memberCertificate(view, one, one.peerCertificate, "peer")),
  ]);
  for (const { flag, path, subject, validFromMs, validToMs } of view.files) {
    const found = dates(view, validFromMs, validToMs);
    if (found === undefined) continue;
    findings.push({
      severity: found.severity,
      check: "certificate",
      member: "client",
      seen: `${flag} ${path} (${subject}) ${found.text}`,
      right: datesRight(view),
      next: `have a new one issued, and look at the present one: openssl x509 -noout -dates -subject -in ${path}`,
    });
  }
  return findings;
}

function memberCertificate(
  view: ClusterView,
  { label, endpoint, member }: MemberView,
  shown: ShownCertificate,
  port: "client" | "peer",
): Finding[] {
  const url = port === "client" ? endpoint : (member?.peerURLs[0] ?? "");
  const what = `the certificate of its ${port} port (${shown.subject}, issued by ${shown.issuer})`;
  const finding = (severity: Severity, problem: string, right: string, next: string): Finding => ({
    severity,
    check: "certificate",
    member: label,
    seen: `${what} ${problem}`,
    right,
    next,
  });
  const look = `openssl s_client -connect ${url.replace(/^\w+:\/\//, "")} </dev/null | openssl x509 -noout -text`;
  const findings: Finding[] = [];
  const found = dates(view, shown.validFromMs, shown.validToMs);
  if (found !== undefined) {
    const flags = port === "client" ? "--cert-file" : "--peer-cert-file";
    findings.push(
      finding(found.severity, found.text, datesRight(view), `issue a new one, put it where ${flags} points, and: systemctl reload quorate`),
    );
  }
  // Which authority the members trust among themselves, a client does not know.
  if (port === "client" && shown.chainProblem !== undefined && !ABOUT_DATES.has(shown.chainProblem)) {
    findings.push(
      finding(
        "error",
        `does not come from the authority that --cacert names (${shown.chainProblem})`,
        "all members' certificates come from the authority that clients trust",
        `${look}; issue one from the right authority, or name that one: ${ctl(view, "--cacert=FILE endpoint health", endpoint)}`,
      ),
    );
  }
  if (shown.nameProblem !== undefined) {
    findings.push(
      finding(
        "error",
        `is not for the name in ${url}: ${shown.nameProblem}`,
        "it names every host and address that the URL may have",
        look,
      ),
    );
  }
  return findings;
}

function datesRight({ limits }: ClusterView): string {
  return `valid for another ${limits.certificateDays} days at least`;
}

/** What is wrong with the dates, if anything is. */
function dates(view: ClusterView, validFromMs: number, validToMs: number): { severity: Severity; text: string } | undefined {
  const leftMs = validToMs - view.nowMs;
  const iso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
  if (leftMs <= 0) return { severity: "error", text: `expired at ${iso(validToMs)}` };
  if (validFromMs > view.nowMs) return { severity: "error", text: `is not valid before ${iso(validFromMs)}` };
  if (leftMs > view.limits.certificateDays * DAY_MS) return undefined;
  const days = leftMs / DAY_MS;
  const left = days >= 2 ? `${Math.floor(days)} days` : `${Math.floor(leftMs / 3_600_000)} hours`;
  return { severity: "warning", text: `expires in ${left}, at ${iso(validToMs)}` };
}
