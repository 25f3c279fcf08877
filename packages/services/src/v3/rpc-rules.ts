/**
 * What each method needs while users and roles are enforced, looked at before its handler is
 * called. Permission for keys is decided in the handler's way into the member.
 */

import type { Access, Member } from "@quorate/member";
import { callerOf, RPC_RULES, type RpcRule } from "@quorate/member";
import { AuthService, errorOf } from "@quorate/proto";
import type { CallContext, UnaryHandler, UnaryResponse } from "@quorate/rpc";

/** Accesses that need what the rules are named by. */
const ROOT_ACCESS: Access = { kind: "defragment" };
const USER_ACCESS: Access = { kind: "status" };
const AUTH_PATHS = `/${AuthService.typeName}/`;

/** @throws EtcdError for a method that has no rule */
export function ruleOf(path: string): RpcRule {
  const row = RPC_RULES.get(path);
  if (row === undefined) throw errorOf("PermissionDenied");
  return row.rule;
}

/**
 * Permits a call by its method's rule.
 * @throws EtcdError UserEmpty, UserNotFound, PermissionDenied, InvalidAuthToken
 */
export function admitByRule(member: Member, context: CallContext): void | Promise<void> {
  const { authority } = member.auth;
  if (!authority.isEnforced) return;
  const rule = ruleOf(context.path);
  if (rule === "open" || rule === "keys") return;
  const access = rule === "root" ? ROOT_ACCESS : USER_ACCESS;
  const admission = authority.admit(callerOf(context), access);
  if (admission instanceof Promise) return admission.then(() => {});
}

/** A handler behind its method's rule. */
export function ruled(member: Member, handler: UnaryHandler): UnaryHandler {
  return (request, context) => {
    if (!member.auth.authority.isEnforced) return handler(request, context);
    if (context.path.startsWith(AUTH_PATHS)) return ruledAuth(member, handler, request, context);
    const admitted = admitByRule(member, context);
    return admitted instanceof Promise
      ? admitted.then(() => handler(request, context))
      : handler(request, context);
  };
}

/** A call of the Auth service sees the changes of users and roles before it. */
async function ruledAuth(
  member: Member,
  handler: UnaryHandler,
  request: Uint8Array,
  context: CallContext,
): Promise<UnaryResponse> {
  if (ruleOf(context.path) === "root") await member.permit(callerOf(context), ROOT_ACCESS);
  return handler(request, context);
}
