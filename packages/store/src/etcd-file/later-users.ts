/**
 * Users and roles as they were after a file was taken, as a member's API shows them: with the roles
 * of each user, and without passwords. Passwords stay those of the file; a user that is not in it
 * has none that fits until an administrator sets one.
 */
import type { Keyspace } from "@quorate/host";
import { authpb, concat, EMPTY, fromUtf8, readU64BE, toUtf8, writeU64BE } from "@quorate/proto";
import { encodeUser } from "../auth/auth-state.ts";
import { Bucket } from "../backend/backend.ts";

export interface LaterUsers {
  readonly isEnabled: boolean;
  readonly authRevision: number;
  /** The roles of each user, in the order of their bytes. */
  readonly users: ReadonlyMap<string, readonly string[]>;
  /** The permissions of each role, in the order of their keys. */
  readonly roles: ReadonlyMap<string, readonly authpb.Permission[]>;
}

type Put = (bucket: Bucket, key: Uint8Array, value: Uint8Array | undefined) => Promise<void>;

const AUTH_ENABLED = fromUtf8("authEnabled");
const AUTH_REVISION = fromUtf8("authRevision");

/**
 * Writes users and roles over those of the file, where they are newer.
 * @returns the users that have no password that fits; undefined: those of the file stay
 */
export async function addLaterUsers(
  keyspace: Keyspace,
  later: LaterUsers,
  put: Put,
): Promise<string[] | undefined> {
  const revision = (await recordsOf(keyspace, Bucket.auth)).get("authRevision");
  if (revision !== undefined && readU64BE(revision) >= later.authRevision) return undefined;
  const inFile = await recordsOf(keyspace, Bucket.authUsers);
  const withoutPassword: string[] = [];
  for (const name of inFile.keys())
    if (!later.users.has(name)) await put(Bucket.authUsers, fromUtf8(name), undefined);
  for (const [name, roles] of later.users) {
    const before = inFile.get(name);
    const known = before === undefined ? undefined : authpb.User.decode(before);
    if (known === undefined) withoutPassword.push(name);
    const password = known?.password ?? EMPTY;
    const options = known?.options ?? { noPassword: false };
    await put(Bucket.authUsers, fromUtf8(name), encodeUser({ name, password, roles, options }));
  }
  for (const name of (await recordsOf(keyspace, Bucket.authRoles)).keys())
    if (!later.roles.has(name)) await put(Bucket.authRoles, fromUtf8(name), undefined);
  for (const [name, permissions] of later.roles) {
    const key = fromUtf8(name).slice();
    const role = authpb.Role.encode({ name: key, keyPermission: [...permissions] });
    await put(Bucket.authRoles, key, role.slice());
  }
  const bytes = new Uint8Array(8);
  writeU64BE(bytes, later.authRevision);
  await put(Bucket.auth, AUTH_REVISION, bytes);
  await put(Bucket.auth, AUTH_ENABLED, new Uint8Array([later.isEnabled ? 1 : 0]));
  return withoutPassword;
}

/** Ends the enforcement of users and roles, which stay. */
export async function disableAuth(keyspace: Keyspace): Promise<void> {
  const key = concat([new Uint8Array([Bucket.auth]), AUTH_ENABLED]);
  await keyspace.write([{ key, value: new Uint8Array([0]) }]);
}

async function recordsOf(keyspace: Keyspace, bucket: Bucket): Promise<Map<string, Uint8Array>> {
  const records = new Map<string, Uint8Array>();
  const range = { from: new Uint8Array([bucket]), to: new Uint8Array([bucket + 1]) };
  for await (const slice of keyspace.scan(range))
    for (const [key, value] of slice) records.set(toUtf8(key.subarray(1)), value.slice());
  return records;
}
