/** `auth can-i`: whether a user may do something, and by which role. */

import type { Command, Invocation } from "@quorate/cli";
import { badArguments, boolFlag, Exit, ExitCode, listFlag } from "@quorate/cli";
import type { Client } from "@quorate/client";
import { type ClientKit, withClient } from "../connect/globals.ts";
import { permissionRange, rangeFlags, rangeText } from "../permissions/range-text.ts";
import {
  type Grant,
  judgeNeed,
  keyRange,
  type Need,
  type RoleGrants,
  type Verdict,
} from "../permissions/verdict.ts";

const OPERATIONS = ["get", "put", "delete", "watch"] as const;
type Operation = (typeof OPERATIONS)[number];

const ROOT = "root";

/** The user, the operation and what it needs. Throws Exit. */
function readQuestion(invocation: Invocation, prefixEnd: ClientKit["build"]["prefixEnd"]) {
  const { flags } = invocation;
  const roles = flags.strings("roles");
  // Roles of a token have no user in the cluster.
  const args = roles.length > 0 ? ["", ...invocation.args] : invocation.args;
  const [user, verb, key, end, more] = args;
  const isShort = user === undefined || verb === undefined || key === undefined;
  if (isShort || more !== undefined) {
    throw badArguments(
      "auth can-i command requires user name, operation (get, put, delete or watch) and key [endkey] as its argument",
    );
  }
  const operation = OPERATIONS.find((one) => one === verb);
  if (operation === undefined)
    throw badArguments(`unknown operation: ${verb} (get, put, delete or watch)`);
  const { key: start, rangeEnd } = permissionRange(invocation, [key, end], prefixEnd);
  if (operation === "put" && rangeEnd.length > 0)
    throw badArguments("a put writes one key: give no range");
  const range = keyRange(start, rangeEnd);
  const needs: Need[] = [{ ...range, access: accessOf(operation) }];
  if (flags.bool("prev-kv") && accessOf(operation) === "WRITE")
    needs.push({ ...range, access: "READ" });
  const who = roles.length > 0 ? `a token with the roles ${roles.join(", ")}` : user;
  return { user: who, listed: roles, needs };
}

function accessOf(operation: Operation): Need["access"] {
  return operation === "put" || operation === "delete" ? "WRITE" : "READ";
}

/**
 * Roles with their permissions: those that a token lists, else those of a user. Rejects with
 * ClientError where there is no such user.
 */
async function rolesOf(
  { auth }: Client,
  user: string,
  listed: readonly string[],
): Promise<RoleGrants[]> {
  const roles = listed.length > 0 ? listed : (await auth.userGet(user)).roles;
  if (roles.includes(ROOT)) return [{ role: ROOT, permissions: [] }];
  const found: RoleGrants[] = [];
  for (const role of roles) {
    try {
      found.push({ role, permissions: (await auth.roleGet(role)).perm });
    } catch (error) {
      // Deleted since, or a token's that is no role here: it allows nothing.
      if ((error as { code?: string }).code !== "RoleNotFound") throw error;
    }
  }
  return found;
}

interface Answer {
  readonly user: string;
  readonly allowed: boolean;
  readonly authEnabled: boolean;
  readonly roles: readonly RoleGrants[];
  readonly verdicts: readonly Verdict[];
}

/** The reasons as lines for people. */
function reasons({ user, roles, verdicts }: Answer, build: ClientKit["build"]): string[] {
  const text = (range: Parameters<typeof rangeText>[0]): string =>
    rangeText(range, build.prefixEnd);
  const grantText = (grant: Grant): string => `role ${grant.role}: ${grant.type} on ${text(grant)}`;
  if (roles.some(({ role }) => role === ROOT)) return [`role ${ROOT}: everything`];
  const lines: string[] = [];
  if (roles.length === 0) lines.push(`user ${user} has no role`);
  for (const { need, by, missing, others } of verdicts) {
    lines.push(...by.map(grantText));
    if (missing.length === 0) continue;
    lines.push(...missing.map((range) => `no role of ${user}: ${need.access} on ${text(range)}`));
    lines.push(
      ...others.map((grant) => `${grantText(grant)}, which does not allow ${need.access}`),
    );
  }
  return [...new Set(lines)];
}

function print({ io, flags }: Invocation, answer: Answer, lines: readonly string[]): void {
  const { user, allowed, authEnabled } = answer;
  if (flags.string("write-out") === "json") {
    io.stdout(`${JSON.stringify({ user, allowed, authEnabled, reasons: lines })}\n`);
  } else {
    io.stdout(`${allowed ? "yes" : "no"}\n${lines.map((line) => `${line}\n`).join("")}`);
  }
  if (!authEnabled) {
    io.stderr(
      "Warning: authentication is not enabled: until it is, every client may do everything\n",
    );
  }
}

export const canICommand: Command = {
  use: "can-i [options] <user name> <get|put|delete|watch> <key> [endkey]",
  short: "Prints whether a user may do something, and by which role",
  long: `Prints whether a user may do something, and by which role. The first line is yes or no; the
exit code is 0 or 1. The permissions of all roles of a user count together. Without authentication
the verdict is the one that holds once it is enabled. With --roles there is no user name: the
verdict is that of a token which lists these roles (--auth-jwt-roles-claim of the members).`,
  flags: {
    roles: listFlag("the roles that a token lists, in place of a user"),
    ...rangeFlags,
    "prev-kv": boolFlag(
      "for put and delete: return what was there before, which needs READ as well",
    ),
  },
  async run(invocation) {
    const form = invocation.flags.string("write-out");
    if (form !== "simple" && form !== "json")
      throw new Exit(ExitCode.badFeature, `${form} not supported as output format`);
    const allowed = await withClient(invocation, async ({ client, build }) => {
      const { user, listed, needs } = readQuestion(invocation, build.prefixEnd);
      const roles = await rolesOf(client, user, listed);
      const { enabled } = await client.auth.status();
      const verdicts = needs.map((need) => judgeNeed(need, roles));
      const isRoot = roles.some(({ role }) => role === ROOT);
      const isAllowed = isRoot || verdicts.every((one) => one.allowed);
      const answer = { user, allowed: isAllowed, authEnabled: enabled, roles, verdicts };
      print(invocation, answer, reasons(answer, build));
      return isAllowed;
    });
    if (!allowed) throw new Exit(ExitCode.error, "");
  },
};
