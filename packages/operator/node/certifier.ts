/** Certificates by Node and the host's library. */
import { X509Certificate } from "node:crypto";
import { issueCertificate, makeAuthority } from "@quorate/host/node";
import type { Certifier } from "../src/cluster/certificates.ts";

export const nodeCertifier: Certifier = {
  authority: (commonName, fromMs, untilMs) => makeAuthority(commonName, { fromMs, untilMs }),
  issue(authority, { commonName, hosts, usage }, fromMs, untilMs) {
    const subject = { commonName, organizations: [], hosts, usage };
    return issueCertificate(authority, subject, { fromMs, untilMs });
  },
  validity(certPem) {
    const { validFromDate, validToDate } = new X509Certificate(certPem);
    return { fromMs: validFromDate.getTime(), untilMs: validToDate.getTime() };
  },
  isSignedBy: (certPem, authorityPem) =>
    new X509Certificate(certPem).verify(new X509Certificate(authorityPem).publicKey),
};
