/** Members over the client: a connection for each look, for members come and go. */
import { type Client, ClientError, connect, prefixEnd } from "@quorate/client";
import { authpb, fromUtf8, idToHex, toUtf8 } from "@quorate/proto";
import type { Members, Membership, Permission, Target } from "../src/base/members.ts";
import type { MemberView, Reached } from "../src/cluster/observed.ts";

/** A member that takes longer to say how it is counts as away. */
const LOOK_MS = 2000;
const CHANGE_MS = 5000;

const ACCESS = {
  read: authpb.Permission_Type.READ,
  write: authpb.Permission_Type.WRITE,
  readwrite: authpb.Permission_Type.READWRITE,
};
const END_OF_KEYS = Uint8Array.of(0);

/** The first part of the host of a member's peer URL. */
function podOf(peerUrls: readonly string[]): string {
  const [first = ""] = peerUrls;
  return URL.canParse(first) ? (new URL(first).hostname.split(".")[0] ?? "") : "";
}

async function within<T>(target: Target, ms: number, task: (client: Client) => Promise<T>) {
  const { certPem, keyPem, trustedPem } = target.credentials;
  const client = connect({
    endpoints: [...target.urls.values()],
    tls: { ca: trustedPem, cert: certPem, key: keyPem },
    timeoutMs: ms,
    dialTimeoutMs: 1000,
  });
  try {
    return await task(client);
  } finally {
    client.close();
  }
}

const isClientError = (error: unknown, code: string): boolean =>
  error instanceof ClientError && error.code === code;

export const clientMembers: Members = {
  async membership(target): Promise<Membership | undefined> {
    try {
      return await within(target, LOOK_MS, async (client) => {
        const { header, members } = await client.memberList();
        const { enabled } = await client.auth.status();
        const views = members.map(
          ({ ID, name, peerURLs, isLearner }): MemberView => ({
            id: idToHex(ID),
            pod: podOf(peerURLs),
            isLearner,
            hasStarted: name !== "",
          }),
        );
        return {
          members: views,
          clusterId: idToHex(header?.clusterId ?? 0n),
          asksForUsers: enabled,
        };
      });
    } catch (error) {
      if (error instanceof ClientError) return undefined;
      throw error;
    }
  },

  async reach(target, pod): Promise<Reached | undefined> {
    const url = target.urls.get(pod)!;
    const one = { ...target, urls: new Map([[pod, url]]) };
    try {
      return await within(one, LOOK_MS, async (client) => {
        const { header, leader, raftTerm, raftIndex, version, isLearner } =
          await client.status(url);
        return {
          id: idToHex(header?.memberId ?? 0n),
          leader: leader === 0n ? "0" : idToHex(leader),
          term: raftTerm,
          index: raftIndex,
          version,
          isLearner,
        };
      });
    } catch (error) {
      if (error instanceof ClientError) return undefined;
      throw error;
    }
  },

  async addLearner(target, peerUrl) {
    await within(target, CHANGE_MS, (client) => client.memberAdd([peerUrl], { isLearner: true }));
  },

  async promote(target, id) {
    try {
      await within(target, CHANGE_MS, (client) => client.memberPromote(BigInt(`0x${id}`)));
      return true;
    } catch (error) {
      if (isClientError(error, "MemberLearnerNotReady")) return false;
      throw error;
    }
  },

  async remove(target, id) {
    await within(target, CHANGE_MS, (client) => client.memberRemove(BigInt(`0x${id}`)));
  },

  async moveLeader(target, from, to) {
    const url = target.urls.get(from)!;
    await within(target, CHANGE_MS, (client) => client.moveLeader(url, BigInt(`0x${to}`)));
  },

  async askForUsers(target, isWanted) {
    await within(target, CHANGE_MS, async ({ auth }) => {
      if (!isWanted) {
        await auth.disable();
        return;
      }
      await unless("RoleAlreadyExist", auth.roleAdd("root"));
      await unless("UserAlreadyExist", auth.userAdd("root", undefined));
      await auth.userGrantRole("root", "root");
      await auth.enable();
    });
  },

  async keepUser(target, name, password, permissions) {
    await within(target, CHANGE_MS, async ({ auth }) => {
      await unless("RoleAlreadyExist", auth.roleAdd(name));
      const { perm } = await auth.roleGet(name);
      const wanted = permissions.map(rangeOf);
      const textOf = ({ permType, key, rangeEnd }: authpb.Permission): string =>
        [permType, toUtf8(key), toUtf8(rangeEnd)].join("\0");
      const present = new Set(perm.map(textOf));
      const kept = new Set(wanted.map(textOf));
      for (const old of perm)
        if (!kept.has(textOf(old))) await auth.roleRevokePermission(name, old.key, old.rangeEnd);
      for (const one of wanted)
        if (!present.has(textOf(one))) await auth.roleGrantPermission(name, one);
      const users = (await auth.userList()).users;
      if (!users.includes(name)) await auth.userAdd(name, password ?? "");
      else if (password !== undefined) await auth.userChangePassword(name, password);
      const { roles } = await auth.userGet(name);
      if (!roles.includes(name)) await auth.userGrantRole(name, name);
    });
  },

  async dropUser(target, name) {
    await within(target, CHANGE_MS, async ({ auth }) => {
      await unless("UserNotFound", auth.userDelete(name));
      await unless("RoleNotFound", auth.roleDelete(name));
    });
  },
};

function rangeOf({ access, key, isPrefix }: Permission): authpb.Permission {
  const bytes = fromUtf8(key);
  const permType = ACCESS[access];
  if (!isPrefix) return authpb.Permission.create({ permType, key: bytes });
  // An empty key with a zero byte as its end: all keys.
  const start = bytes.length === 0 ? END_OF_KEYS : bytes;
  const rangeEnd = bytes.length === 0 ? END_OF_KEYS : prefixEnd(bytes);
  return authpb.Permission.create({ permType, key: start, rangeEnd });
}

async function unless(code: string, task: Promise<unknown>): Promise<void> {
  try {
    await task;
  } catch (error) {
    if (!isClientError(error, code)) throw error;
  }
}
