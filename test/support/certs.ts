/**
 * Throw-away certificates for tests, made in memory in about a millisecond each: X.509 version 3
 * (RFC 5280), P-256 keys, written as DER by hand, so that a test can also make what a proper tool
 * would refuse to.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { isIPv4 } from "node:net";

/** A certificate with its key, as PEM texts. */
export interface TestCertificate {
  readonly certPem: string;
  readonly keyPem: string;
  readonly name: string;
  readonly serial: number;
}

export interface TestCertificateOptions {
  /** Common name of the subject; none if empty. */
  readonly name: string;
  /** Who signs; itself if absent. */
  readonly issuer?: TestCertificate | undefined;
  readonly isCa?: boolean | undefined;
  /** For which use it is valid: extended key usage; both if absent. */
  readonly usage?: "server" | "client" | "both" | undefined;
  readonly dnsNames?: readonly string[] | undefined;
  readonly ipAddresses?: readonly string[] | undefined;
  /** Days from now; a negative one is expired. */
  readonly validDays?: number | undefined;
  /** Instead of days: when it becomes valid and when it ends, in ms since 1970, by the second. */
  readonly validMs?: readonly [from: number, to: number] | undefined;
}

/** serverAuth and clientAuth. */
const USAGES = {
  server: ["2b06010505070301"],
  client: ["2b06010505070302"],
  both: ["2b06010505070301", "2b06010505070302"],
} as const;

let lastSerial = 0x1000;

/** Makes a certificate. */
export function makeCertificate(options: TestCertificateOptions): TestCertificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const serial = ++lastSerial;
  const issuerName = options.issuer?.name ?? options.name;
  const issuerKey = options.issuer ? createPrivateKey(options.issuer.keyPem) : privateKey;
  const days = options.validDays ?? 1;
  const now = Date.now();
  const validMs = options.validMs ?? [
    now - (days < 0 ? 2 - days : 1) * DAY_MS,
    now + days * DAY_MS,
  ];
  const names = [
    ...(options.dnsNames ?? []).map((name) => der(0x82, Buffer.from(name, "latin1"))),
    ...(options.ipAddresses ?? []).map((address) => der(0x87, addressBytes(address))),
  ];
  const extensions = [
    ...(options.isCa
      ? [
          extension("551d13", true, sequence(der(0x01, Buffer.from([0xff])))),
          extension("551d0f", true, hex("03020106")),
        ]
      : []),
    ...(options.isCa
      ? []
      : [extension("551d25", false, sequence(...USAGES[options.usage ?? "both"].map(oid)))]),
    ...(names.length > 0 ? [extension("551d11", false, sequence(...names))] : []),
  ];
  const tbs = sequence(
    der(0xa0, integer(2)),
    integer(serial),
    SIGNATURE_ALGORITHM,
    nameOf(issuerName),
    sequence(...validMs.map(time)),
    nameOf(options.name),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions)),
  );
  return {
    certPem: pem("CERTIFICATE", signed(tbs, issuerKey)),
    keyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    name: options.name,
    serial,
  };
}

/** A self-signed authority. */
export function makeAuthority(name = "test-ca"): TestCertificate {
  return makeCertificate({ name, isCa: true });
}

/** A certificate for 127.0.0.1 and localhost, signed by `issuer`. */
export function makeLocalCertificate(
  issuer: TestCertificate,
  name: string,
  more: Partial<TestCertificateOptions> = {},
): TestCertificate {
  return makeCertificate({
    ...more,
    name,
    issuer,
    dnsNames: ["localhost"],
    ipAddresses: ["127.0.0.1", "::1"],
  });
}

/** A revocation list in DER with the serial numbers of `revoked`. */
export function makeRevocationList(
  issuer: TestCertificate,
  revoked: readonly TestCertificate[],
): Buffer {
  const now = Date.now();
  const entries = revoked.map((one) => sequence(integer(one.serial), time(now)));
  const tbs = sequence(
    integer(1),
    SIGNATURE_ALGORITHM,
    nameOf(issuer.name),
    time(now - DAY_MS),
    time(now + DAY_MS),
    ...(entries.length > 0 ? [sequence(...entries)] : []),
  );
  return signed(tbs, createPrivateKey(issuer.keyPem));
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** ecdsa-with-SHA256 */
const SIGNATURE_ALGORITHM = sequence(oid("2a8648ce3d040302"));

function signed(tbs: Buffer, key: KeyObject): Buffer {
  return sequence(
    tbs,
    SIGNATURE_ALGORITHM,
    der(0x03, Buffer.concat([Buffer.from([0]), sign("sha256", tbs, key)])),
  );
}

function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const length = content.length;
  const head =
    length < 0x80
      ? [tag, length]
      : length < 0x100
        ? [tag, 0x81, length]
        : length < 0x10000
          ? [tag, 0x82, length >> 8, length & 0xff]
          : [tag, 0x83, length >> 16, (length >> 8) & 0xff, length & 0xff];
  return Buffer.concat([Buffer.from(head), content]);
}

function sequence(...contents: Buffer[]): Buffer {
  return der(0x30, ...contents);
}

function integer(value: number): Buffer {
  const digits = value.toString(16);
  const bytes = hex(digits.length % 2 === 0 ? digits : `0${digits}`);
  return der(0x02, bytes[0] >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}

function hex(digits: string): Buffer {
  return Buffer.from(digits, "hex");
}

function oid(digits: string): Buffer {
  return der(0x06, hex(digits));
}

function time(ms: number): Buffer {
  return der(
    0x17,
    Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`, "latin1"),
  );
}

function nameOf(commonName: string): Buffer {
  if (commonName === "") return sequence();
  return sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from(commonName, "utf8")))));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [der(0x01, Buffer.from([0xff]))] : []), der(0x04, value));
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  if (address === "::1") return Buffer.from([...new Array<number>(15).fill(0), 1]);
  throw new RangeError(`not an address that tests use: ${address}`);
}

function pem(label: string, bytes: Buffer): string {
  return `-----BEGIN ${label}-----\n${bytes
    .toString("base64")
    .replace(/(.{64})/g, "$1\n")
    .trimEnd()}\n-----END ${label}-----\n`;
}
