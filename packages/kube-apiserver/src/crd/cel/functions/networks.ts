/** IP addresses and networks (apiserver: pkg/cel/library/ip.go, cidr.go). */
import { maskedBytes, parseIpV4, parseIpV6, shownIp } from "../../validation/ip.ts";
import type { CelEnvironment } from "../library.ts";

/** An address as bytes: four or sixteen. */
class Ip {
  readonly bytes: readonly number[];

  constructor(bytes: readonly number[]) {
    this.bytes = bytes;
  }
}

class Cidr {
  readonly ip: Ip;
  readonly bits: number;

  constructor(ip: Ip, bits: number) {
    this.ip = ip;
    this.bits = bits;
  }
}

function parseIp(text: string): Ip | undefined {
  if (text.split(".").some((part) => /^0\d/.test(part))) return undefined;
  const bytes = parseIpV4(text) ?? parseIpV6(text);
  if (bytes === undefined || isMapped(bytes)) return undefined;
  return new Ip(bytes);
}

/** ::ffff:1.2.3.4 is refused: programs disagree on what it is. */
function isMapped(bytes: readonly number[]): boolean {
  const prefix = bytes.slice(0, 10).every((byte) => byte === 0);
  return bytes.length === 16 && prefix && bytes[10] === 255 && bytes[11] === 255;
}

function requiredIp(text: string): Ip {
  const ip = parseIp(text);
  if (ip !== undefined) return ip;
  throw new SyntaxError(
    `IP Address ${JSON.stringify(text)} parse error during conversion from string: ` +
      `ParseAddr(${JSON.stringify(text)}): unable to parse IP`,
  );
}

function parseCidr(text: string): Cidr | undefined {
  const parts = /^([^/]*)\/(0|[1-9]\d{0,2})$/.exec(text);
  const ip = parts === null ? undefined : parseIp(parts[1]);
  if (parts === null || ip === undefined) return undefined;
  const bits = Number(parts[2]);
  return bits > ip.bytes.length * 8 ? undefined : new Cidr(ip, bits);
}

function requiredCidr(text: string): Cidr {
  const cidr = parseCidr(text);
  if (cidr !== undefined) return cidr;
  throw new SyntaxError(
    `network address parse error during conversion from string: ` +
      `netip.ParsePrefix(${JSON.stringify(text)}): no '/'`,
  );
}

const shown = ({ bytes }: Ip): string => shownIp(bytes);

/** Whether the first bits of two addresses are the same. */
function sameBits(a: Ip, b: Ip, bits: number): boolean {
  if (a.bytes.length !== b.bytes.length) return false;
  return a.bytes.every((byte, i) => {
    const left = Math.min(Math.max(bits - 8 * i, 0), 8);
    return (byte ^ b.bytes[i]) >> (8 - left) === 0;
  });
}

function masked({ ip, bits }: Cidr): Cidr {
  return new Cidr(new Ip(maskedBytes(ip.bytes, bits)), bits);
}

const is = {
  unspecified: ({ bytes }: Ip) => bytes.every((byte) => byte === 0),
  loopback: ({ bytes }: Ip) =>
    bytes.length === 4
      ? bytes[0] === 127
      : bytes.slice(0, 15).every((byte) => byte === 0) && bytes[15] === 1,
  multicast: ({ bytes }: Ip) => (bytes.length === 4 ? bytes[0] >> 4 === 14 : bytes[0] === 255),
  linkLocalMulticast: ({ bytes }: Ip) =>
    bytes.length === 4
      ? bytes[0] === 224 && bytes[1] === 0 && bytes[2] === 0
      : bytes[0] === 255 && (bytes[1] & 15) === 2,
  linkLocalUnicast: ({ bytes }: Ip) =>
    bytes.length === 4
      ? bytes[0] === 169 && bytes[1] === 254
      : bytes[0] === 254 && (bytes[1] & 0xc0) === 128,
};

function isGlobalUnicast(ip: Ip): boolean {
  const broadcast = ip.bytes.length === 4 && ip.bytes.every((byte) => byte === 255);
  const other = is.unspecified(ip) || is.loopback(ip) || is.multicast(ip);
  return !broadcast && !other && !is.linkLocalUnicast(ip);
}

class IpNamespace {}

export function registerNetworks(environment: CelEnvironment): void {
  environment
    .registerType("net.IP", Ip)
    .registerType("net.CIDR", Cidr)
    .registerType("IpNamespace", IpNamespace)
    .registerConstant("ip", "IpNamespace", new IpNamespace())
    .registerFunction(
      "IpNamespace.isCanonical(string): bool",
      (_, text: string) => shown(requiredIp(text)) === text,
    )
    .registerOperator("net.IP == net.IP", (a: Ip, b: Ip) => sameBits(a, b, 128))
    .registerOperator(
      "net.CIDR == net.CIDR",
      (a: Cidr, b: Cidr) => a.bits === b.bits && sameBits(a.ip, b.ip, 128),
    )
    .registerFunction("ip(string): net.IP", requiredIp)
    .registerFunction("isIP(string): bool", (text: string) => parseIp(text) !== undefined)
    .registerFunction("string(net.IP): string", shown)
    .registerFunction("net.IP.family(): int", ({ bytes }: Ip) => (bytes.length === 4 ? 4n : 6n))
    .registerFunction("net.IP.isUnspecified(): bool", is.unspecified)
    .registerFunction("net.IP.isLoopback(): bool", is.loopback)
    .registerFunction("net.IP.isLinkLocalMulticast(): bool", is.linkLocalMulticast)
    .registerFunction("net.IP.isLinkLocalUnicast(): bool", is.linkLocalUnicast)
    .registerFunction("net.IP.isGlobalUnicast(): bool", isGlobalUnicast);
  registerCidrs(environment);
}

function registerCidrs(environment: CelEnvironment): void {
  const containsIp = ({ ip, bits }: Cidr, other: Ip) => sameBits(ip, other, bits);
  const containsCidr = (outer: Cidr, inner: Cidr) =>
    inner.bits >= outer.bits && containsIp(outer, inner.ip);
  environment
    .registerFunction("cidr(string): net.CIDR", requiredCidr)
    .registerFunction("isCIDR(string): bool", (text: string) => parseCidr(text) !== undefined)
    .registerFunction("string(net.CIDR): string", ({ ip, bits }: Cidr) => `${shown(ip)}/${bits}`)
    .registerFunction("net.CIDR.ip(): net.IP", ({ ip }: Cidr) => ip)
    .registerFunction("net.CIDR.masked(): net.CIDR", masked)
    .registerFunction("net.CIDR.prefixLength(): int", ({ bits }: Cidr) => BigInt(bits))
    .registerFunction("net.CIDR.containsIP(net.IP): bool", containsIp)
    .registerFunction("net.CIDR.containsIP(string): bool", (cidr: Cidr, text: string) =>
      containsIp(cidr, requiredIp(text)),
    )
    .registerFunction("net.CIDR.containsCIDR(net.CIDR): bool", containsCidr)
    .registerFunction("net.CIDR.containsCIDR(string): bool", (cidr: Cidr, text: string) =>
      containsCidr(cidr, requiredCidr(text)),
    );
}
