/** Labels and HTTP addresses of members. */
import { parseEndpoint } from "@quorate/client";
import { idToHex, type Member } from "@quorate/proto";
import type { ClientTls, Target } from "./http.ts";

/**
 * A member of the member list with its endpoints, or an endpoint of an unknown member.
 */
export interface ListedMember {
  readonly member: Member | undefined;
  readonly endpoints: readonly string[];
}

/**
 * A member's name; its id and peer URLs while it has no name; the endpoint of an unknown member.
 */
export function labelOf({ member, endpoints }: ListedMember): string {
  return member === undefined
    ? (endpoints[0] ?? "?")
    : member.name || `${idToHex(member.ID)} (${member.peerURLs.join(",")})`;
}

/** The HTTP address of an endpoint; undefined if it is malformed. */
export function targetOf(endpoint: string, tls: ClientTls | undefined): Target | undefined {
  try {
    return parseEndpoint(endpoint, tls !== undefined && tls.plainByDefault !== true);
  } catch {
    return undefined;
  }
}
