/**
 * Users and roles under faults: an administrator changes them all the time, and at the end of a
 * round all members have the same. Every client is `client`, by its certificate, with the role
 * root, so what is changed is nobody's permission.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "@quorate/host";
import { AuthService, fromLatin1, KVService, type MethodDescriptor } from "@quorate/proto";
import { type RequestOf, TestClient } from "../support/client.ts";
import type { RunningCluster } from "./members.ts";
import type { Shared } from "./workload.ts";

const methods = AuthService.methods;
const EVERY_MS = 250;
const NAMES = ["ann", "bob", "cid"] as const;
const ROLES = ["reader", "writer", "both"] as const;
const CALL_LIMIT_MS = 10_000;

/** Switches users on. The cluster has no faults yet. */
export async function switchUsersOn(running: RunningCluster): Promise<void> {
  const client = new TestClient(running.nodes[0]!.test.clientAddress, running.cluster.identity);
  const call = <M extends MethodDescriptor>(method: M, request: RequestOf<M>) =>
    client.call(method, request, CALL_LIMIT_MS);
  try {
    await call(methods.RoleAdd, { name: "root" });
    for (const name of ["root", "client"]) {
      await call(methods.UserAdd, { name, options: { noPassword: true } });
      await call(methods.UserGrantRole, { user: name, role: "root" });
    }
    await call(methods.AuthEnable, {});
  } finally {
    client.close();
  }
}

/** Lives until the round's clients are stopped. What it is refused does not matter. */
export async function liveAsAdministrator(
  running: RunningCluster,
  shared: Shared,
  random: Random,
): Promise<void> {
  const { pace, recorder } = shared;
  const one = <T>(choices: readonly T[]): T => choices[random.below(choices.length)]!;
  const connect = () =>
    new TestClient(one(running.nodes).test.clientAddress, running.cluster.identity);
  let client = connect();
  const call = <M extends MethodDescriptor>(method: M, request: RequestOf<M>) =>
    client.call(method, request, pace.callLimitMs).then(
      () => recorder.counts.userChanges++,
      () => {},
    );
  while (!shared.stopped) {
    await delay(random.below(2 * EVERY_MS));
    const user = one(NAMES);
    const role = one(ROLES);
    const [key, rangeEnd] = [fromLatin1(one(["a", "b", "c"])), fromLatin1(one(["", "c", "d"]))];
    const permType = one([0, 1, 2] as const);
    const changes = [
      () => call(methods.UserAdd, { name: user, options: { noPassword: true } }),
      () => call(methods.UserDelete, { name: user }),
      () => call(methods.RoleAdd, { name: role }),
      () => call(methods.RoleDelete, { role }),
      () => call(methods.UserGrantRole, { user, role }),
      () => call(methods.UserGrantRole, { user, role }),
      () => call(methods.UserRevokeRole, { name: user, role }),
      () => call(methods.RoleGrantPermission, { name: role, perm: { permType, key, rangeEnd } }),
      () => call(methods.RoleGrantPermission, { name: role, perm: { permType, key, rangeEnd } }),
      () => call(methods.RoleRevokePermission, { role, key, rangeEnd }),
    ];
    await one(changes)();
    if (random.below(8) > 0) continue;
    client.close();
    client = connect();
  }
  client.close();
}

/** How the members' users and roles differ; undefined if they do not. Nobody may change them. */
export async function usersDiffer(running: RunningCluster): Promise<string | undefined> {
  const all = await Promise.all(
    running.nodes.map(async ({ name, test }) => {
      const client = new TestClient(test.clientAddress, running.cluster.identity);
      const call = <M extends MethodDescriptor>(method: M, request: RequestOf<M>) =>
        client.call(method, request, CALL_LIMIT_MS);
      try {
        // Linearizable: all before it is applied.
        await call(KVService.methods.Range, { key: fromLatin1("x") });
        const { authRevision } = await call(methods.AuthStatus, {});
        const users = [];
        for (const user of (await call(methods.UserList, {})).users)
          users.push([user, (await call(methods.UserGet, { name: user })).roles]);
        const roles = [];
        for (const role of (await call(methods.RoleList, {})).roles) {
          const { perm } = await call(methods.RoleGet, { role });
          // etcd 3.5 shows no permission of the role root; since 3.6 it shows the one of all keys.
          roles.push([role, role === "root" ? [] : perm]);
        }
        return { name, text: JSON.stringify({ authRevision, users, roles }) };
      } finally {
        client.close();
      }
    }),
  );
  if (new Set(all.map(({ text }) => text)).size === 1) return undefined;
  return `users and roles differ:\n${all.map(({ name, text }) => `${name}: ${text}`).join("\n")}`;
}
