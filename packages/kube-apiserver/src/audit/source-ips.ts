/** The addresses of a request's source, in the order of the audit log (apimachinery: util/net). */
import type { HttpHead } from "@quorate/host";
import { parseIpV4, parseIpV6 } from "../crd/validation/ip.ts";

/** Addresses that a client may claim in headers; further ones are left out. */
export const MAX_CLAIMED_ADDRESSES = 32;

/** Those of X-Forwarded-For, then X-Real-Ip, then the connection's, which alone is certain. */
export function sourceIps({ headers, peerAddress }: HttpHead): readonly string[] {
  const found: string[] = [];
  for (const part of (headers.get("x-forwarded-for") ?? "").split(",", MAX_CLAIMED_ADDRESSES)) {
    const address = addressOf(part.trim());
    if (address !== undefined) found.push(address);
  }
  const real = addressOf((headers.get("x-real-ip") ?? "").trim());
  if (real !== undefined && !found.includes(real)) found.push(real);
  const colon = peerAddress.lastIndexOf(":");
  const host = colon === -1 ? peerAddress : peerAddress.slice(0, colon);
  const remote = addressOf(host.replace(/^\[|\]$/g, "")) ?? addressOf(peerAddress);
  if (remote !== undefined && found.at(-1) !== remote) found.push(remote);
  return found;
}

/** In Go's form; undefined for what is no address. */
function addressOf(text: string): string | undefined {
  const v4 = parseIpV4(text.startsWith("::ffff:") ? text.slice(7) : text);
  if (v4 !== undefined) return v4.join(".");
  return parseIpV6(text) === undefined ? undefined : text.toLowerCase();
}
