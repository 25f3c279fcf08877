/**
 * Requests of callers whose roles come with a token of an identity provider, not from the store:
 *
 *     InternalRaftRequest { header {ID, username, auth_revision},
 *                           token_roles { roles, request: InternalRaftRequest { put } } }
 *
 * The roles are in the entry, so every member comes to the same verdict. They are around the
 * request and not in the header: a member of an earlier release ends at a request that it does not
 * know, where it would skip a field of the header and judge by other roles than the rest.
 */
import { InternalRaftRequest, TokenRolesRequest } from "@quorate/proto";
import { ANONYMOUS, type AuthIdentity } from "../auth/authorize.ts";
import { MAX_TOKEN_ROLE_LENGTH, MAX_TOKEN_ROLES } from "../auth/limits.ts";
import { InvalidRequestError } from "../entry/invalid-request.ts";

/** An entry's request and the party that it is of. */
export interface IdentifiedRequest {
  /** Has the field of the request; its header is not looked at. */
  readonly request: InternalRaftRequest;
  readonly identity: AuthIdentity;
}

/**
 * The request in an entry, and who has sent it.
 * @throws WireError for roles that do not decode
 */
export function identifiedRequest(entry: InternalRaftRequest): IdentifiedRequest {
  const identity = entry.header ?? ANONYMOUS;
  if (entry.tokenRoles === undefined) return { request: entry, identity };
  const { roles, request } = TokenRolesRequest.decode(entry.tokenRoles);
  const { username, authRevision } = identity;
  return {
    request: InternalRaftRequest.decode(request),
    identity: { username, authRevision, roles },
  };
}

/** The bytes of an entry's request with roles around it. @param request without a header */
export function encodeWithRoles(
  header: InternalRaftRequest["header"],
  roles: readonly string[],
  request: Uint8Array,
): Uint8Array {
  const tokenRoles = TokenRolesRequest.encode({ roles: [...roles], request });
  return InternalRaftRequest.encode({ header, tokenRoles });
}

/**
 * The bytes of the request inside of an entry's roles; undefined for an entry without roles.
 * @throws WireError; InvalidRequestError for more or longer roles than a token may have
 */
export function innerRequest({ tokenRoles }: InternalRaftRequest): Uint8Array | undefined {
  if (tokenRoles === undefined) return undefined;
  const { roles, request } = TokenRolesRequest.decode(tokenRoles);
  if (roles.length > MAX_TOKEN_ROLES || roles.some((one) => one.length > MAX_TOKEN_ROLE_LENGTH))
    throw new InvalidRequestError("an entry with more roles than a token may have");
  return request;
}
