/** The requests of the Auth service as records of the table of requests. */
import {
  AuthDisableRequest,
  AuthEnableRequest,
  AuthRoleAddRequest,
  AuthRoleDeleteRequest,
  AuthRoleGetRequest,
  AuthRoleGrantPermissionRequest,
  AuthRoleListRequest,
  AuthRoleRevokePermissionRequest,
  AuthStatusRequest,
  AuthUserAddRequest,
  AuthUserChangePasswordRequest,
  AuthUserDeleteRequest,
  AuthUserGetRequest,
  AuthUserGrantRoleRequest,
  AuthUserListRequest,
  AuthUserRevokeRoleRequest,
  type ErrorName,
  InternalAuthenticateRequest,
  type MessageType,
  type ResponseHeader,
  UserCreationsRequest,
  utf8Length,
} from "@quorate/proto";
import { headerAt } from "../backend/revision.ts";
import type { Steps } from "../backend/steps.ts";
import { InvalidRequestError } from "../entry/invalid-request.ts";
import type { RequestRecord } from "../requests/request-record.ts";
import * as apply from "./apply-auth.ts";
import type { AuthState } from "./auth-state.ts";
import { decodeBase64 } from "./base64.ts";
import { MAX_NAME_BYTES, MAX_PERMISSION_KEY_BYTES, tooMany } from "./limits.ts";

/** Bytes of a password's hash in an entry; bcrypt's have 60. */
const MAX_HASH_BYTES = 256;

type Work<Q, R> = (
  auth: AuthState,
  header: ResponseHeader,
  request: Q,
  index: number,
) => R | Steps<R>;

function record<Q, R>(
  type: MessageType<Q>,
  work: Work<Q, R>,
  check: (request: Q) => ErrorName | undefined = () => undefined,
): RequestRecord<Q, R> {
  return {
    type,
    check,
    // As in etcd, users can be changed while data is refused.
    refusedWhenCorrupt: false,
    apply: ({ auth, mvcc, index }, request) =>
      work(auth, headerAt(mvcc.currentRevision), request, index),
  };
}

/** By the field of InternalRaftRequest. */
export const AUTH_REQUESTS = {
  authenticate: record(InternalAuthenticateRequest, apply.authenticate, checkAuthenticate),
  authStatus: record(AuthStatusRequest, apply.authStatus),
  authEnable: record(AuthEnableRequest, apply.authEnable),
  authDisable: record(AuthDisableRequest, apply.authDisable),
  authUserCreations: record(UserCreationsRequest, apply.authUserCreations),
  authUserAdd: record(AuthUserAddRequest, apply.userAdd, (request) => {
    checkName(request.name);
    return checkHash(request);
  }),
  authUserDelete: record(AuthUserDeleteRequest, apply.userDelete),
  authUserGet: record(AuthUserGetRequest, apply.userGet),
  authUserChangePassword: record(
    AuthUserChangePasswordRequest,
    apply.userChangePassword,
    checkHash,
  ),
  authUserGrantRole: record(AuthUserGrantRoleRequest, apply.userGrantRole),
  authUserRevokeRole: record(AuthUserRevokeRoleRequest, apply.userRevokeRole),
  authUserList: record(AuthUserListRequest, apply.userList),
  authRoleAdd: record(AuthRoleAddRequest, apply.roleAdd, ({ name }) => checkName(name)),
  authRoleDelete: record(AuthRoleDeleteRequest, apply.roleDelete),
  authRoleGet: record(AuthRoleGetRequest, apply.roleGet),
  authRoleGrantPermission: record(
    AuthRoleGrantPermissionRequest,
    apply.roleGrantPermission,
    checkPermission,
  ),
  authRoleRevokePermission: record(AuthRoleRevokePermissionRequest, apply.roleRevokePermission),
  authRoleList: record(AuthRoleListRequest, apply.roleList),
} as const;

/** A name is a key of the store's and a part of every response that lists it. */
function checkName(name: string): undefined {
  if (utf8Length(name) > MAX_NAME_BYTES) throw tooMany("bytes in a name", MAX_NAME_BYTES);
}

/** A plain password never enters the log (CVE-2021-28235). */
function checkHash(request: {
  readonly password: string;
  readonly hashedPassword: string;
}): undefined {
  if (request.password !== "") throw new InvalidRequestError("a plain password in an entry");
  const hash = decodeBase64(request.hashedPassword);
  if (hash === undefined || hash.length > MAX_HASH_BYTES) {
    throw new InvalidRequestError("a password hash that is not base64, or too long");
  }
}

function checkAuthenticate({ password, simpleToken }: InternalAuthenticateRequest): undefined {
  if (password !== "") throw new InvalidRequestError("a plain password in an entry");
  if (!/^[a-zA-Z]{0,64}$/.test(simpleToken)) {
    throw new InvalidRequestError("a token with other characters than letters");
  }
}

function checkPermission({ perm }: AuthRoleGrantPermissionRequest): undefined {
  if (perm === undefined) return;
  if (Math.max(perm.key.length, perm.rangeEnd.length) > MAX_PERMISSION_KEY_BYTES) {
    throw tooMany("bytes in the key of a permission", MAX_PERMISSION_KEY_BYTES);
  }
}
