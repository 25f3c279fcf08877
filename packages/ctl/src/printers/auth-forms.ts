/** How answers about users and roles are printed. */

import {
  AuthRoleAddResponse,
  AuthRoleDeleteResponse,
  AuthRoleGetResponse,
  AuthRoleGrantPermissionResponse,
  AuthRoleListResponse,
  AuthRoleRevokePermissionResponse,
  AuthStatusResponse,
  AuthUserAddResponse,
  AuthUserChangePasswordResponse,
  AuthUserDeleteResponse,
  AuthUserGetResponse,
  AuthUserGrantRoleResponse,
  AuthUserListResponse,
  AuthUserRevokeRoleResponse,
  authpb,
  concat,
  equals,
  fromLatin1,
  fromUtf8,
  quoteBytes,
  toLatin1,
} from "@quorate/proto";
import { doneForm, type FieldLine, type Form, formOf } from "./form.ts";

const { Permission_Type } = authpb;
const permissionNames: ReadonlyMap<number, string> = new Map(
  Object.entries(Permission_Type).map(([name, type]) => [type, name]),
);

/** The end of a range that has no end. */
const OPEN_END = "\0";

export const roleAddForm = (role: string) => doneForm(AuthRoleAddResponse, `Role ${role} created`);
export const roleDeleteForm = (role: string) =>
  doneForm(AuthRoleDeleteResponse, `Role ${role} deleted`);
export const roleGrantForm = (role: string) =>
  doneForm(AuthRoleGrantPermissionResponse, `Role ${role} updated`);

/** @param rangeEnd empty for a single key */
export function roleRevokeForm(
  role: string,
  key: Uint8Array,
  rangeEnd: Uint8Array,
): Form<AuthRoleRevokePermissionResponse> {
  const [start, end] = [toLatin1(key), toLatin1(rangeEnd)];
  const range = end === OPEN_END ? `[${start}, <open ended>` : `[${start}, ${end})`;
  const what = end === "" ? `Permission of key ${start} is` : `Permission of range ${range} is`;
  return {
    ...doneForm(AuthRoleRevokePermissionResponse, ""),
    simple: () => concat([fromLatin1(`${what} revoked from role `), fromUtf8(`${role}\n`)]),
  };
}

export const userAddForm = (user: string) => doneForm(AuthUserAddResponse, `User ${user} created`);
export const userDeleteForm = (user: string) =>
  doneForm(AuthUserDeleteResponse, `User ${user} deleted`);
export const passwordForm = doneForm(AuthUserChangePasswordResponse, "Password updated");
export const userGrantForm = (user: string, role: string) =>
  doneForm(AuthUserGrantRoleResponse, `Role ${role} is granted to user ${user}`);
export const userRevokeForm = (user: string, role: string) =>
  doneForm(AuthUserRevokeRoleResponse, `Role ${role} is revoked from user ${user}`);

export function roleGetForm(
  role: string,
  prefixEnd: (key: Uint8Array) => Uint8Array,
): Form<AuthRoleGetResponse> {
  // Keys are bytes, so lines are put together as such, a char a byte.
  const shown = ({ key, rangeEnd }: authpb.Permission): string => {
    const start = toLatin1(key);
    if (rangeEnd.length === 0) return `\t${start}`;
    const end = toLatin1(rangeEnd);
    const prefix = key.length > 0 && equals(prefixEnd(key), rangeEnd) ? ` (prefix ${start})` : "";
    return `\t[${start}, ${end === OPEN_END ? "<open ended>" : `${end})`}${prefix}`;
  };
  return formOf(AuthRoleGetResponse, {
    simple({ perm }) {
      const all = role === "root" && perm.length === 0;
      const list = (kind: number): string[] =>
        all
          ? ["\t[, <open ended>"]
          : perm
              .filter(({ permType }) => permType === kind || permType === Permission_Type.READWRITE)
              .map(shown);
      const lines = [
        "KV Read:",
        ...list(Permission_Type.READ),
        "KV Write:",
        ...list(Permission_Type.WRITE),
      ];
      return concat([
        fromUtf8(`Role ${role}\n`),
        fromLatin1(lines.map((line) => `${line}\n`).join("")),
      ]);
    },
    fields: ({ perm }) =>
      perm.flatMap(({ permType, key, rangeEnd }): FieldLine[] => [
        // Two spaces, as etcdctl prints it.
        `"PermType" :  ${permissionNames.get(permType) ?? permType}`,
        ["Key", quoteBytes(key)],
        ["RangeEnd", quoteBytes(rangeEnd)],
      ]),
  });
}

export const roleListForm = formOf(AuthRoleListResponse, {
  simple: ({ roles }) => roles.map((role) => `${role}\n`).join(""),
  fields: ({ roles }) => [`"Roles" :${quotedList(roles)}`],
});

function quotedList(names: readonly string[]): string {
  return names.map((name) => ` ${quoteBytes(fromUtf8(name))}`).join("");
}

export const userGetForm = (user: string) =>
  formOf(AuthUserGetResponse, {
    simple: ({ roles }) => `User: ${user}\nRoles:${roles.map((role) => ` ${role}`).join("")}\n`,
  });

export const userListForm = formOf(AuthUserListResponse, {
  simple: ({ users }) => users.map((user) => `${user}\n`).join(""),
});

export const authStatusForm = formOf(AuthStatusResponse, {
  simple: ({ enabled, authRevision }) =>
    `Authentication Status: ${enabled}\nAuthRevision: ${authRevision}\n`,
});
