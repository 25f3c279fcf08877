/** Users and roles as a client of a member in memory has them made. */

import type { Member } from "@quorate/member";
import { AuthService, fromUtf8, type MethodDescriptor } from "@quorate/proto";
import type { CallContext } from "@quorate/rpc";
import { serviceTable } from "@quorate/services";
import { ClientCall, withToken } from "./client-call.ts";
import { call, type World } from "./world.ts";

const { AuthEnable, Authenticate, RoleAdd, RoleGrantPermission, UserAdd, UserGrantRole } =
  AuthService.methods;

/** The password of every user. */
export const PASSWORD = "secret";

type RequestOf<M extends MethodDescriptor> = Parameters<M["requestType"]["encode"]>[0];
type ResponseOf<M extends MethodDescriptor> = ReturnType<M["responseType"]["decode"]>;

/** Calls a method with a token. */
export async function callAs<M extends MethodDescriptor>(
  member: Member,
  token: string | undefined,
  method: M,
  request: RequestOf<M>,
  context: Partial<CallContext> = {},
): Promise<ResponseOf<M>> {
  const metadata: Record<string, string> = token === undefined ? {} : { token };
  const bytes = method.requestType.encode(request as object);
  return method.responseType.decode(
    await call(member, method.path, bytes, metadata, context),
  ) as ResponseOf<M>;
}

/** The token of a user. */
export async function login(member: Member, name: string, password = PASSWORD): Promise<string> {
  return (await callAs(member, undefined, Authenticate, { name, password })).token;
}

/** Makes root, and users that may read and write below their name, and enables auth. */
export async function enableAuth(
  world: World,
  member: Member,
  ...users: readonly string[]
): Promise<string> {
  const ask = <M extends MethodDescriptor>(method: M, request: RequestOf<M>) =>
    world.settled(callAs(member, undefined, method, request));
  await ask(UserAdd, { name: "root", password: PASSWORD });
  await ask(UserGrantRole, { user: "root", role: "root" });
  for (const name of users) {
    await ask(UserAdd, { name, password: PASSWORD });
    await ask(RoleAdd, { name });
    const perm = { permType: 2, key: fromUtf8(`${name}/`), rangeEnd: fromUtf8(`${name}0`) };
    await ask(RoleGrantPermission, { name, perm });
    await ask(UserGrantRole, { user: name, role: name });
  }
  await ask(AuthEnable, {});
  return world.settled(login(member, "root"));
}

/** A stream of a client's, in memory. */
export function openAs(member: Member, path: string, token: string | undefined) {
  const call = new ClientCall(path, withToken(token));
  const listener = serviceTable(member).stream.get(path)!(call);
  return Object.assign(call, { listener });
}
