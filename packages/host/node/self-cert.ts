/**
 * Certificates that a member makes for itself (--auto-tls, --peer-auto-tls): one that signs itself,
 * made at the first start and kept in the data directory. They encrypt the traffic; they do not
 * authenticate the peer (etcd: client/pkg/transport, SelfCert).
 *
 *     DATA-DIR/fixtures/client/{cert,key}.pem    shown to clients
 *     DATA-DIR/fixtures/peer/{cert,key}.pem      shown to other members, which take any
 */
import { KeyObject, type webcrypto, X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { Clock } from "../src/clock.ts";
import type { Logger } from "../src/logger.ts";
import type { SelfCertConfig } from "../src/self-cert.ts";
import { writeWholeFile } from "./whole-file.ts";

const PRIVATE_DIR_MODE = 0o700;
const YEAR_MS = 365 * 24 * 3_600_000;
/** etcd's choice. */
const ALGORITHM = { name: "ECDSA", namedCurve: "P-521", hash: "SHA-512" } as const;

/** Makes the files where one of the two is missing. Throws Node's errors, which name the path. */
export async function ensureSelfCert(
  config: SelfCertConfig,
  clock: Clock,
  logger: Logger,
): Promise<void> {
  const { certFile, keyFile } = config;
  if (existsSync(certFile) && existsSync(keyFile)) {
    warnOfEnd(certFile, clock, logger);
    return;
  }
  mkdirSync(config.dir, { recursive: true, mode: PRIVATE_DIR_MODE });
  const notBefore = new Date(clock.wallMs());
  const notAfter = new Date(clock.wallMs() + config.validityYears * YEAR_MS);
  logger.warn("automatically generate certificates", {
    "certificate-validity-bound-not-after": notAfter.toISOString(),
  });
  const { certPem, keyPem } = await selfSigned(config.hosts, notBefore, notAfter);
  writeWholeFile(keyFile, keyPem, 0o600);
  writeWholeFile(certFile, certPem, 0o644);
  logger.info("created cert file", { path: certFile });
  logger.info("created key file", { path: keyFile });
}

/** A member keeps the certificate that it has, as etcd's does. */
function warnOfEnd(certFile: string, clock: Clock, logger: Logger): void {
  const { validToDate } = new X509Certificate(readFileSync(certFile));
  if (validToDate.getTime() > clock.wallMs()) return;
  logger.warn(
    "the certificate that this member made for itself has expired; remove it and start again for a new one",
    {
      path: certFile,
      "not-after": validToDate.toISOString(),
    },
  );
}

async function selfSigned(
  hosts: readonly string[],
  notBefore: Date,
  notAfter: Date,
): Promise<{ certPem: string; keyPem: string }> {
  // Loading them takes as long as much of a start does, and most members have certificates. The
  // second needs the first.
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  const keys = (await crypto.subtle.generateKey(ALGORITHM, true, [
    "sign",
    "verify",
  ])) as webcrypto.CryptoKeyPair;
  const { keyEncipherment, digitalSignature, cRLSign } = x509.KeyUsageFlags;
  const names = [...new Set(hosts)].map(
    (host) => ({ type: isIP(host) === 0 ? "dns" : "ip", value: host }) as const,
  );
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ O: ["etcd"] }],
    notBefore,
    notAfter,
    keys,
    signingAlgorithm: ALGORITHM,
    serialNumber: newSerial(),
    extensions: [
      new x509.KeyUsagesExtension(keyEncipherment | digitalSignature | cRLSign, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.BasicConstraintsExtension(true, undefined, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
    ],
  });
  const keyPem = KeyObject.from(keys.privateKey).export({ type: "sec1", format: "pem" });
  return { certPem: `${certificate.toString("pem")}\n`, keyPem: keyPem.toString() };
}

/** 16 random bytes as hex; the first bit clear, because a serial number is positive. */
export function newSerial(): string {
  const [first = 0, ...others] = crypto.getRandomValues(new Uint8Array(16));
  return Buffer.from([(first & 0x7f) | 0x40, ...others]).toString("hex");
}
