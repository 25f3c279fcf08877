/** Who calls, as the cluster is to see it: the metadata that goes with each call upstream. */
import { hostOfAddress } from "@quorate/host";
import { AuthService } from "@quorate/proto";
import { type CallContext, type CallStart, FORWARDED_FOR } from "@quorate/rpc";

/** Metadata of one call upstream. */
export type Metadata = CallStart["metadata"];

/** Names of metadata that are passed on. Others concern only the connection to the proxy. */
const PASSED_ON = ["token", "authorization", "hasleader", "traceparent"] as const;
const NONE: Metadata = [];
const LOGIN = AuthService.methods.Authenticate.path;

/**
 * The metadata of a client's call that its call upstream needs too. A login has the address that it
 * comes from: members that trust the proxy (--trusted-proxies) count failed logins by it. What the
 * client says of that itself is not passed on.
 */
export function passedOn(context: CallContext): Metadata {
  let metadata: { name: string; value: string }[] | undefined;
  if (context.path === LOGIN)
    metadata = [{ name: FORWARDED_FOR, value: hostOfAddress(context.peerAddress) }];
  for (const name of PASSED_ON) {
    const value = context.metadata(name);
    if (value === undefined) continue;
    metadata ??= [];
    metadata.push({ name, value });
  }
  return metadata ?? NONE;
}

/** An identity: calls of the same one may share what the cluster returns. */
export interface Caller {
  /** A text that differs for different tokens; empty without one. */
  readonly identity: string;
  /** The token as metadata; empty without one. */
  readonly credentials: Metadata;
  /** The client wants its streams to end when the cluster has no leader. */
  readonly requiresLeader: boolean;
}

/**
 * The caller of a call. The cluster knows clients of a proxy by their tokens alone: the certificate
 * that it sees is the proxy's own.
 */
export function callerOf(context: CallContext): Caller {
  const token = context.metadata("token");
  const authorization = context.metadata("authorization");
  const requiresLeader = context.metadata("hasleader") === "true";
  // The member takes the first of the two; so does the identity.
  if (token !== undefined)
    return {
      identity: `t${token}`,
      credentials: [{ name: "token", value: token }],
      requiresLeader,
    };
  if (authorization === undefined) return { identity: "", credentials: NONE, requiresLeader };
  const credentials = [{ name: "authorization", value: authorization }];
  return { identity: `a${authorization}`, credentials, requiresLeader };
}

/** The metadata by which a member ends a stream when it loses its leader. */
export const REQUIRES_LEADER: Metadata = [{ name: "hasleader", value: "true" }];
