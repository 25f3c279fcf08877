/** The requests of the Auth service as they are in the log: fields of InternalRaftRequest. */
import type { InternalRaftRequest } from "@quorate/proto";
import { AUTH_REQUESTS } from "@quorate/store";

export type AuthKind = keyof typeof AUTH_REQUESTS;

/** The message of a kind. */
export type AuthMessage<K extends AuthKind> = ReturnType<
  (typeof AUTH_REQUESTS)[K]["type"]["decode"]
>;

const NAMES = Object.keys(AUTH_REQUESTS) as readonly AuthKind[];

/** The request of the Auth service in an entry; undefined where it has another. */
export function authKindOf(internal: InternalRaftRequest): AuthKind | undefined {
  return NAMES.find((kind) => internal[kind] !== undefined);
}

/** The message of a request. */
export function decodeAuth(kind: AuthKind, bytes: Uint8Array): unknown {
  return AUTH_REQUESTS[kind].type.decode(bytes);
}
