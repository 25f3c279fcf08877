/**
 * Whether a certificate can be a member's. The authority alone does not decide it: clients'
 * certificates often come from the same one.
 *
 * A member's certificate is also shown to those who connect to it, so it names the hosts of the
 * member's peer URLs and is good for a server. A client's certificate has no host at all, or not
 * those of a member. Three things switch the checks off, because the certificate that a member
 * dials with may then be any: allowed common names or host names (the operator has said which
 * certificates are members'), a certificate of its own for dialling (--peer-client-cert-file), and
 * --peer-skip-client-san-verification.
 */
import type { X509Certificate } from "node:crypto";
import { checkServerIdentity } from "node:tls";
import { alternativeNames, demandsClientCertificate, type TlsOptions } from "@quorate/host/node";
import type { FitsUrls } from "../src/member-directory.ts";
import { parsePeerUrl } from "./dial.ts";
import type { ResolvedOptions } from "./options.ts";

/** serverAuth, of the extended key usages (RFC 5280 section 4.2.1.12). */
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";

/** Whether certificates of those who connect are compared with what is known of members. */
export function bindsCertificates(
  tls: TlsOptions | undefined,
  skipClientSanVerification: boolean,
): boolean {
  if (tls === undefined || skipClientSanVerification || !demandsClientCertificate(tls))
    return false;
  const namesAreAllowed =
    (tls.allowedCommonNames?.length ?? 0) > 0 || (tls.allowedHostnames?.length ?? 0) > 0;
  return !namesAreAllowed && tls.clientCertPem === undefined;
}

/** Why a certificate cannot be a member's, whichever member it is; undefined if it can. */
export function refuseClientCertificate(certificate: X509Certificate): string | undefined {
  const { dnsNames, ipAddresses } = alternativeNames(certificate);
  if (dnsNames.length === 0 && ipAddresses.length === 0) {
    return "the certificate names no host, so it is not a member's: a member's certificate names the hosts of its peer URLs";
  }
  // Without the extension a certificate is good for everything.
  const usages: readonly string[] | undefined = certificate.keyUsage;
  if (usages !== undefined && usages.length > 0 && !usages.includes(SERVER_AUTH)) {
    return "the certificate is good for clients only, so it is not a member's: one of a member has the extended key usage serverAuth";
  }
  return undefined;
}

/**
 * Whether the certificate of a caller is that of a member at some peer URLs; always true where
 * certificates say nothing.
 */
export function fitsUrls(
  { tls, skipClientSanVerification }: ResolvedOptions,
  certificate: X509Certificate | undefined,
): FitsUrls {
  if (certificate === undefined || !bindsCertificates(tls?.current, skipClientSanVerification))
    return () => true;
  return (peerUrls) => namesHostOf(certificate, peerUrls, tls?.current.serverName ?? "");
}

/**
 * True if the certificate names the host of one of these peer URLs, by the rules that
 * hold when this member dials them.
 * @param serverName the name that is expected in the place of hosts when this member dials, empty
 * for none
 */
function namesHostOf(
  certificate: X509Certificate,
  peerUrls: readonly string[],
  serverName: string,
): boolean {
  const legacy = certificate.toLegacyObject();
  const names = serverName === "" ? [] : [serverName];
  for (const url of peerUrls) {
    const host = parsePeerUrl(url)?.host;
    if (host !== undefined) names.push(host);
  }
  return names.some((name) => checkServerIdentity(name, legacy) === undefined);
}
