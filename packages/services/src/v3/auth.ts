/**
 * etcdserverpb.Auth (etcd: server/etcdserver/v3_server.go). Every call goes through the log, those
 * that only read too. Passwords are hashed and checked before, so that none is in the log.
 */
import {
  type Caller,
  callerOf,
  type Member,
  NO_PASSWORD_TEXT,
  TOO_MANY_FAILURES,
} from "@quorate/member";
import {
  AuthenticateRequest,
  AuthenticateResponse,
  AuthService,
  AuthUserAddRequest,
  AuthUserChangePasswordRequest,
  errorOf,
  fromUtf8,
  GrpcCode,
  InternalAuthenticateRequest,
  type MessageType,
  type ResponseHeader,
  toBase64,
} from "@quorate/proto";
import { type CallContext, StatusError, type UnaryHandler } from "@quorate/rpc";
import { isBase64, type RequestKind, ROOT } from "@quorate/store";
import { completed } from "../calls/results.ts";

/** Logins are tried so often while users and roles change under them. */
const MAX_LOGIN_ROUNDS = 8;

/** The kinds of request that calls become as they are. */
const KINDS = {
  AuthEnable: "authEnable",
  AuthDisable: "authDisable",
  AuthStatus: "authStatus",
  UserGet: "authUserGet",
  UserList: "authUserList",
  UserDelete: "authUserDelete",
  UserGrantRole: "authUserGrantRole",
  UserRevokeRole: "authUserRevokeRole",
  RoleAdd: "authRoleAdd",
  RoleGet: "authRoleGet",
  RoleList: "authRoleList",
  RoleDelete: "authRoleDelete",
  RoleGrantPermission: "authRoleGrantPermission",
  RoleRevokePermission: "authRoleRevokePermission",
} as const satisfies { readonly [name: string]: RequestKind };

/** The handlers of the Auth service, by path. */
export function authService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const handlers = new Map<string, UnaryHandler>();
  const { methods } = AuthService;
  for (const [name, kind] of Object.entries(KINDS)) {
    const { path, responseType } = methods[name as keyof typeof KINDS];
    handlers.set(path, (bytes, context) => propose(member, context, kind, bytes, responseType));
  }
  handlers.set(methods.Authenticate.path, async (bytes, context) => {
    const request = AuthenticateRequest.decode(bytes);
    return AuthenticateResponse.encode(await authenticate(member, callerOf(context), request));
  });
  handlers.set(methods.UserAdd.path, async (bytes, context) => {
    const request = AuthUserAddRequest.decode(bytes);
    const hasPassword = request.options?.noPassword !== true;
    const hashedPassword = hasPassword ? await hashOf(member, context, request.password) : "";
    const proposed = AuthUserAddRequest.encode({ ...request, password: "", hashedPassword });
    await member.noteUserCreations();
    return propose(member, context, "authUserAdd", proposed, methods.UserAdd.responseType);
  });
  const { responseType: changed } = methods.UserChangePassword;
  handlers.set(methods.UserChangePassword.path, async (bytes, context) => {
    const request = AuthUserChangePasswordRequest.decode(bytes);
    // As in etcd, a hash is taken as it is where there is no password.
    const hashedPassword =
      request.password === ""
        ? request.hashedPassword
        : await hashOf(member, context, request.password);
    if (!isBase64(hashedPassword)) throw new StatusError(GrpcCode.Unknown, NO_PASSWORD_TEXT);
    const changes = { ...request, password: "", hashedPassword };
    const proposed = AuthUserChangePasswordRequest.encode(changes);
    return propose(member, context, "authUserChangePassword", proposed, changed);
  });
  return handlers;
}

async function propose(
  member: Member,
  context: CallContext,
  kind: RequestKind,
  bytes: Uint8Array,
  // biome-ignore lint/suspicious/noExplicitAny: responses of all kinds
  responseType: MessageType<any>,
): Promise<Uint8Array> {
  const applied = await member.propose(callerOf(context), kind, bytes);
  return responseType.encode(
    completed(member, applied as { error: undefined; response: { header: ResponseHeader } }),
  );
}

async function hashOf(member: Member, context: CallContext, password: string): Promise<string> {
  const hash = await member.auth.passwords.hash(password, callerOf(context));
  return toBase64(fromUtf8(hash));
}

/**
 * Checks a password and makes a token.
 * @throws EtcdError AuthNotEnabled, AuthFailed; StatusError for a user without a password, and
 *   after too many failures
 */
async function authenticate(
  member: Member,
  caller: Caller,
  { name, password }: AuthenticateRequest,
): Promise<AuthenticateResponse> {
  await member.current();
  for (let round = 0; round < MAX_LOGIN_ROUNDS; round++) {
    const checkedRevision = await checkPassword(member, caller, name, password);
    const simpleToken = member.auth.tokens.prefix();
    const login = InternalAuthenticateRequest.encode({ name, simpleToken });
    const applied = completed(member, await member.propose(caller, "authenticate", login));
    const { revision } = member.store.auth;
    // The password may have been changed while it was checked.
    if (checkedRevision !== revision) continue;
    const token = await member.auth.tokens.issue(name, revision, applied.token);
    return { header: applied.header, token };
  }
  throw errorOf("AuthOldRevision");
}

/** @returns the auth revision by which the password is right */
async function checkPassword(
  member: Member,
  caller: Caller,
  name: string,
  password: string,
): Promise<number> {
  const { auth } = member.store;
  const { logins, passwords } = member.auth;
  if (!auth.isEnabled) throw errorOf("AuthNotEnabled");
  const nowMs = member.clock.monotonicMs();
  const party = logins.partyOf({
    peerAddress: caller.address,
    peerCommonName: caller.commonName,
    metadata: (key) => caller.metadata(key),
  });
  if (!logins.mayTry(name, party, nowMs)) {
    logins.refused(name, party, nowMs);
    throw new StatusError(GrpcCode.ResourceExhausted, TOO_MANY_FAILURES);
  }
  const user = auth.user(name);
  const { revision } = auth;
  const noPassword = user?.options?.noPassword === true;
  const hash = noPassword ? undefined : user?.password;
  // An unknown user must take as long as others, whatever cost their hashes were made with.
  const like = auth.user(ROOT)?.password;
  const isRight = await passwords.verify(
    password,
    hash,
    { client: party, cancelled: caller.cancelled },
    like,
  );
  if (isRight) {
    logins.succeeded(name, party);
    return revision;
  }
  logins.failed(name, party, member.clock.monotonicMs());
  if (noPassword) throw new StatusError(GrpcCode.Unknown, NO_PASSWORD_TEXT);
  throw errorOf("AuthFailed");
}
