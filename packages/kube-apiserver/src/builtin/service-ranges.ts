/**
 * A range of cluster addresses (kubernetes: registry/core/service/ipallocator). Its network's name
 * and, in IPv4, its last address are given to nobody:
 *
 *     10.0.0.0/24    10.0.0.1 ... 10.0.0.16   for those who ask for one
 *                    10.0.0.17 ... 10.0.0.254 for all others first
 */
import { isCidr, maskedBytes, parseIpV4, parseIpV6, shownIp } from "../crd/validation/ip.ts";

export type Family = "IPv4" | "IPv6";

/** Larger networks of IPv6 are no ranges. */
const MIN_IPV6_BITS = 64;
const MIN_STATIC = 16;
const MAX_STATIC = 256;

export function familyOf(address: string): Family {
  return address.includes(":") ? "IPv6" : "IPv4";
}

/** The canonical text of an address; undefined for none. */
export function canonicalAddress(text: string): string | undefined {
  const bytes = parseIpV4(text) ?? parseIpV6(text);
  return bytes && shownIp(bytes);
}

/**
 * Whether a network has an address, or all of another network.
 * @param inner "10.0.0.0/24" or "10.0.0.1"
 */
export function isWithin(inner: string, outer: string): boolean {
  const network = parsed(outer);
  const part = parsed(inner);
  if (network === undefined || part === undefined) return false;
  if (part.bytes.length !== network.bytes.length || part.bits < network.bits) return false;
  const masked = maskedBytes(part.bytes, network.bits);
  return maskedBytes(network.bytes, network.bits).every((byte, i) => byte === masked[i]);
}

function parsed(text: string): { bytes: readonly number[]; bits: number } | undefined {
  const [address = "", size] = text.split("/", 2);
  const bytes = parseIpV4(address) ?? parseIpV6(address);
  return bytes && { bytes, bits: size === undefined ? bytes.length * 8 : Number(size) };
}

export class AddressRange {
  /** Such as "10.0.0.0/24". */
  readonly cidr: string;
  readonly family: Family;
  /** How many addresses it gives. */
  readonly size: number;
  /** How many at its begin are kept for those who ask for one of them. */
  readonly staticSize: number;
  readonly #network: readonly number[];
  readonly #bits: number;

  private constructor(network: readonly number[], bits: number) {
    this.#network = network;
    this.#bits = bits;
    this.cidr = `${shownIp(network)}/${bits}`;
    this.family = network.length === 4 ? "IPv4" : "IPv6";
    const all = 2 ** (network.length * 8 - bits);
    this.size = Math.max(
      Math.min(all, Number.MAX_SAFE_INTEGER) - (network.length === 4 ? 2 : 1),
      0,
    );
    this.staticSize =
      all <= MIN_STATIC ? 0 : Math.min(Math.max(Math.floor(all / 16), MIN_STATIC), MAX_STATIC);
  }

  /** Undefined for a text that is no range of addresses, or a too large one. */
  static parse(cidr: string): AddressRange | undefined {
    if (!isCidr(cidr)) return undefined;
    const [address = "", size] = cidr.split("/");
    const bits = Number(size);
    const bytes = parseIpV4(address) ?? parseIpV6(address) ?? [];
    if (bytes.length === 16 && bits < MIN_IPV6_BITS) return undefined;
    return new AddressRange(maskedBytes(bytes, bits), bits);
  }

  /** The name of the network: "10.0.0.0". */
  get network(): string {
    return shownIp(this.#network);
  }

  /** @param index from 0 to below `size` */
  at(index: number): string {
    const bytes = [...this.#network];
    let rest = index + 1;
    for (let i = bytes.length - 1; rest > 0 && i >= 0; i--) {
      rest += bytes[i] ?? 0;
      bytes[i] = rest % 256;
      rest = Math.floor(rest / 256);
    }
    return shownIp(bytes);
  }

  /** Whether the address is one of those that the range gives. */
  gives(address: string): boolean {
    const bytes = parseIpV4(address) ?? parseIpV6(address) ?? [];
    if (bytes.length !== this.#network.length) return false;
    if (shownIp(maskedBytes(bytes, this.#bits)) !== this.network) return false;
    if (shownIp(bytes) === this.network) return false;
    return this.family === "IPv6" || shownIp(bytes) !== this.at(this.size);
  }
}
