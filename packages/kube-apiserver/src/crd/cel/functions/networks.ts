/** IP addresses and networks (apiserver: pkg/cel/library/ip.go, cidr.go). */
import {
  addressIs,
  hasLeadingZero,
  isMapped,
  maskedBytes,
  parseIpV4,
  parseIpV6,
  shownIp,
} from "../../validation/ip.ts";
import type { Environment } from "../lang/environment.ts";
import { CIDR, IP, LibraryValue } from "../lang/library.ts";
import { EvaluationError, noSuchOverload } from "../lang/values.ts";

/** An address as bytes: four or sixteen. */
class Ip extends LibraryValue {
  readonly celType = IP;
  readonly bytes: readonly number[];

  constructor(bytes: readonly number[]) {
    super();
    this.bytes = bytes;
  }

  /** For costs. */
  get celSize(): number {
    return this.bytes.length;
  }

  equals(other: unknown): boolean {
    return other instanceof Ip && sameBits(this, other, 128);
  }
}

class Cidr extends LibraryValue {
  readonly celType = CIDR;
  readonly ip: Ip;
  readonly bits: number;

  constructor(ip: Ip, bits: number) {
    super();
    this.ip = ip;
    this.bits = bits;
  }

  /** For costs: the bytes of the network. */
  get celSize(): number {
    return Math.ceil(this.bits / 8);
  }

  equals(other: unknown): boolean {
    return other instanceof Cidr && other.bits === this.bits && this.ip.equals(other.ip);
  }
}

function parseIp(text: string): Ip | undefined {
  if (hasLeadingZero(text)) return undefined;
  const bytes = parseIpV4(text) ?? parseIpV6(text);
  // Programs disagree on what a mapped one is.
  if (bytes === undefined || isMapped(bytes)) return undefined;
  return new Ip(bytes);
}

function requiredIp(text: string): Ip {
  const ip = parseIp(text);
  if (ip !== undefined) return ip;
  throw new EvaluationError(
    `IP Address ${JSON.stringify(text)} parse error during conversion from string: ` +
      `ParseAddr(${JSON.stringify(text)}): unable to parse IP`,
  );
}

function parseCidr(text: string): Cidr | undefined {
  const [, address, size] = /^([^/]*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const ip = address === undefined ? undefined : parseIp(address);
  if (ip === undefined) return undefined;
  const bits = Number(size);
  return bits > ip.bytes.length * 8 ? undefined : new Cidr(ip, bits);
}

/** Texts that are none are arguments of another type, as in Kubernetes. */
function argument<T>(value: T | undefined): T {
  if (value === undefined) throw noSuchOverload();
  return value;
}

function requiredCidr(text: string): Cidr {
  const cidr = parseCidr(text);
  if (cidr !== undefined) return cidr;
  const bits = text.split("/")[1];
  const why = bits === undefined ? "no '/'" : `bad bits after slash: ${JSON.stringify(bits)}`;
  const what = "network address parse error during conversion from string: ";
  throw new EvaluationError(`${what}${what}netip.ParsePrefix(${JSON.stringify(text)}): ${why}`);
}

const shown = ({ bytes }: Ip): string => shownIp(bytes);

/** Whether the first bits of two addresses are the same. */
function sameBits(a: Ip, b: Ip, bits: number): boolean {
  if (a.bytes.length !== b.bytes.length) return false;
  return a.bytes.every((byte, i) => {
    const left = Math.min(Math.max(bits - 8 * i, 0), 8);
    return (byte ^ (b.bytes[i] ?? 0)) >> (8 - left) === 0;
  });
}

function masked({ ip, bits }: Cidr): Cidr {
  return new Cidr(new Ip(maskedBytes(ip.bytes, bits)), bits);
}

function isGlobalUnicast({ bytes }: Ip): boolean {
  const { unspecified, loopback, multicast, linkLocalUnicast } = addressIs;
  const broadcast = bytes.length === 4 && bytes.every((byte) => byte === 255);
  const other = unspecified(bytes) || loopback(bytes) || multicast(bytes);
  return !broadcast && !other && !linkLocalUnicast(bytes);
}

/** Whether an address is of a kind. */
function is(kind: keyof typeof addressIs): (ip: Ip) => boolean {
  return ({ bytes }) => addressIs[kind](bytes);
}

export function registerNetworks(environment: Environment): void {
  environment
    .type(IP)
    .type(CIDR)
    .function("ip.isCanonical(string): bool", (text: string) => shown(requiredIp(text)) === text)
    .function("ip(string): net.IP", requiredIp)
    .function("isIP(string): bool", (text: string) => parseIp(text) !== undefined)
    .function("string(net.IP): string", shown)
    .function("net.IP.family(): int", ({ bytes }: Ip) => (bytes.length === 4 ? 4n : 6n))
    .function("net.IP.isUnspecified(): bool", is("unspecified"))
    .function("net.IP.isLoopback(): bool", is("loopback"))
    .function("net.IP.isLinkLocalMulticast(): bool", is("linkLocalMulticast"))
    .function("net.IP.isLinkLocalUnicast(): bool", is("linkLocalUnicast"))
    .function("net.IP.isGlobalUnicast(): bool", isGlobalUnicast);
  registerCidrs(environment);
}

function registerCidrs(environment: Environment): void {
  const containsIp = ({ ip, bits }: Cidr, other: Ip) => sameBits(ip, other, bits);
  const containsCidr = (outer: Cidr, inner: Cidr) =>
    inner.bits >= outer.bits && containsIp(outer, inner.ip);
  environment
    .function("cidr(string): net.CIDR", requiredCidr)
    .function("isCIDR(string): bool", (text: string) => parseCidr(text) !== undefined)
    .function("string(net.CIDR): string", ({ ip, bits }: Cidr) => `${shown(ip)}/${bits}`)
    .function("net.CIDR.ip(): net.IP", ({ ip }: Cidr) => ip)
    .function("net.CIDR.masked(): net.CIDR", masked)
    .function("net.CIDR.prefixLength(): int", ({ bits }: Cidr) => BigInt(bits))
    .function("net.CIDR.containsIP(net.IP): bool", containsIp)
    .function("net.CIDR.containsIP(string): bool", (cidr: Cidr, text: string) =>
      containsIp(cidr, argument(parseIp(text))),
    )
    .function("net.CIDR.containsCIDR(net.CIDR): bool", containsCidr)
    .function("net.CIDR.containsCIDR(string): bool", (cidr: Cidr, text: string) =>
      containsCidr(cidr, argument(parseCidr(text))),
    );
}
