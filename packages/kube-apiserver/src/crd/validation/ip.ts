/** IP addresses and networks as Go parses them (net.ParseIP, with leading zeros in IPv4). */

/** The four bytes of an IPv4 address in dotted form. */
export function parseIpV4(text: string): number[] | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,10}$/.test(part))) return undefined;
  const bytes = parts.map(Number);
  return bytes.every((byte) => byte <= 255) ? bytes : undefined;
}

/** The sixteen bytes of an IPv6 address; its last part may be dotted. */
export function parseIpV6(text: string): number[] | undefined {
  if (!text.includes(":") || text.length > 64) return undefined;
  const [first = "", second, third] = text.split("::");
  if (second === undefined) {
    const bytes = groupsOf(text, true);
    return bytes?.length === 16 ? bytes : undefined;
  }
  if (third !== undefined) return undefined;
  const head = groupsOf(first, false);
  const tail = groupsOf(second, true);
  if (head === undefined || tail === undefined) return undefined;
  const missing = 16 - head.length - tail.length;
  return missing < 2 ? undefined : [...head, ...new Array<number>(missing).fill(0), ...tail];
}

function groupsOf(text: string, last: boolean): number[] | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  const groups = text.split(":");
  for (const [i, group] of groups.entries()) {
    if (last && i === groups.length - 1 && group.includes(".")) {
      const dotted = parseIpV4(group);
      if (dotted === undefined) return undefined;
      bytes.push(...dotted);
    } else if (/^[0-9a-fA-F]{1,4}$/.test(group)) {
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
    } else return undefined;
  }
  return bytes;
}

/** ::ffff:1.2.3.4 */
export function isMapped(bytes: readonly number[]): boolean {
  const prefix = bytes.slice(0, 10).every((byte) => byte === 0);
  return bytes.length === 16 && prefix && bytes[10] === 255 && bytes[11] === 255;
}

/** An IPv4 part such as "010", which programs read as eight or as ten. */
export function hasLeadingZero(address: string): boolean {
  return address.split(".").some((part) => /^0\d/.test(part));
}

type Bytes = readonly number[];

/** The kinds of addresses that Go's net.IP tells apart, by their bytes. */
export const addressIs = {
  unspecified: (bytes: Bytes): boolean => bytes.every((byte) => byte === 0),
  loopback: (bytes: Bytes): boolean =>
    bytes.length === 4
      ? bytes[0] === 127
      : bytes.slice(0, 15).every((byte) => byte === 0) && bytes[15] === 1,
  multicast: ({ length, 0: first = 0 }: Bytes): boolean =>
    length === 4 ? first >> 4 === 14 : first === 255,
  linkLocalMulticast: ({ length, 0: first, 1: second = 0, 2: third }: Bytes): boolean =>
    length === 4
      ? first === 224 && second === 0 && third === 0
      : first === 255 && (second & 15) === 2,
  linkLocalUnicast: ({ length, 0: first, 1: second = 0 }: Bytes): boolean =>
    length === 4 ? first === 169 && second === 254 : first === 254 && (second & 0xc0) === 128,
} as const;

export function isIpV4(text: string): boolean {
  return parseIpV4(text) !== undefined || (text.includes(".") && parseIpV6(text) !== undefined);
}

export function isIpV6(text: string): boolean {
  return parseIpV6(text) !== undefined;
}

/** "10.0.0.0/8": an address and the number of bits of its network. */
export function isCidr(text: string): boolean {
  const slash = text.indexOf("/");
  if (slash < 0) return false;
  const bits = text.slice(slash + 1);
  if (!/^\d{1,3}$/.test(bits)) return false;
  const address = text.slice(0, slash);
  if (parseIpV4(address) !== undefined) return Number(bits) <= 32;
  return parseIpV6(address) !== undefined && Number(bits) <= 128;
}

/** An address of four or sixteen bytes in its canonical form. */
export function shownIp(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, i) => {
    const [high = 0, low = 0] = bytes.slice(2 * i, 2 * i + 2);
    return high * 256 + low;
  });
  let [start, length] = [-1, 1];
  for (let i = 0; i < 8; i++) {
    let end = i;
    while (end < 8 && groups[end] === 0) end++;
    if (end - i > length) [start, length] = [i, end - i];
  }
  const text = (part: readonly number[]) => part.map((one) => one.toString(16)).join(":");
  if (start < 0) return text(groups);
  return `${text(groups.slice(0, start))}::${text(groups.slice(start + length))}`;
}

/** The first `bits` bits of an address; the others are 0. */
export function maskedBytes(bytes: readonly number[], bits: number): number[] {
  return bytes.map((byte, i) => {
    const left = Math.min(Math.max(bits - 8 * i, 0), 8);
    return byte & (0xff << (8 - left)) & 0xff;
  });
}
