/** Names of members, and where plain HTTP is spoken with them. */
import { parseEndpoint } from "@quorate/client";
import { idToHex, type Member } from "@quorate/proto";
import type { ClientTls, Target } from "./http.ts";

/**
 * A member as the cluster lists it, with the endpoints that may lead to it, or an endpoint alone.
 */
export interface Place {
  readonly member: Member | undefined;
  readonly endpoints: readonly string[];
}

/**
 * A member's name; its id and peer URLs before it has one; the endpoint where no member is known.
 */
export function labelOf({ member, endpoints }: Place): string {
  return member === undefined
    ? (endpoints[0] ?? "?")
    : member.name || `${idToHex(member.ID)} (${member.peerURLs.join(",")})`;
}

/** Where plain HTTP is to be spoken with an endpoint; undefined for one that is none. */
export function targetOf(endpoint: string, tls: ClientTls | undefined): Target | undefined {
  try {
    return parseEndpoint(endpoint, tls !== undefined && tls.plainByDefault !== true);
  } catch {
    return undefined;
  }
}
