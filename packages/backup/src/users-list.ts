/** Users and roles in a record of a backup: etcd's messages, one after the other. */
import { authpb, concat, EMPTY, fromUtf8, readU32BE, toUtf8, writeU32BE } from "@quorate/proto";
import type { LaterUsers } from "@quorate/store";

type Lists = Pick<LaterUsers, "users" | "roles">;

const USER = 1;
const ROLE = 2;
const HEAD_BYTES = 5;

/** The bytes of a list. */
export function usersList({ users, roles }: Lists): Uint8Array {
  const parts: Uint8Array[] = [];
  const add = (kind: number, message: Uint8Array): void => {
    const head = new Uint8Array(HEAD_BYTES);
    head[0] = kind;
    writeU32BE(head, message.length, 1);
    parts.push(head, message.slice());
  };
  for (const [name, list] of users) {
    const key = fromUtf8(name).slice();
    add(USER, authpb.User.encode({ name: key, password: EMPTY, roles: [...list] }));
  }
  for (const [name, permissions] of roles) {
    const key = fromUtf8(name).slice();
    add(ROLE, authpb.Role.encode({ name: key, keyPermission: [...permissions] }));
  }
  return concat(parts);
}

/** Reads a list. @throws RangeError for one that is cut short, WireError */
export function readUsersList(bytes: Uint8Array): Lists {
  const users = new Map<string, readonly string[]>();
  const roles = new Map<string, readonly authpb.Permission[]>();
  for (let at = 0; at < bytes.length; ) {
    const start = at + HEAD_BYTES;
    if (start > bytes.length) throw new RangeError("a list of users is cut short");
    const end = start + readU32BE(bytes, at + 1);
    if (end > bytes.length) throw new RangeError("a list of users is cut short");
    const message = bytes.slice(start, end);
    if (bytes[at] === USER) {
      const { name, roles: list } = authpb.User.decode(message);
      users.set(toUtf8(name), list);
    } else if (bytes[at] === ROLE) {
      const { name, keyPermission } = authpb.Role.decode(message);
      roles.set(toUtf8(name), keyPermission);
    } else throw new RangeError(`${bytes[at]} is no kind of a user or a role`);
    at = end;
  }
  return { users, roles };
}
