/**
 * quoratectl migrate: three members of etcd under load become three of Quorate, and etcd again,
 * with users and mutual TLS, while watches, leases and a lock are held. `./dev soak migrate` does
 * it with more.
 * @slow
 */
import { test } from "node:test";
import { etcdOf, skipWithoutEtcdNewest } from "../support/executables.ts";
import { ClientLoad } from "./migrate/load.ts";
import { thereAndBack, withMove } from "./migrate/move.ts";

for (const release of ["3.5", "3.7"] as const) {
  const isMissing = release !== "3.7" && etcdOf(release) === undefined;
  const skip = isMissing ? `etcd ${release} is not installed` : skipWithoutEtcdNewest;
  test(`three members of etcd ${release} go to Quorate and back, and nothing that clients hold is lost`, {
    skip,
  }, async (t) => {
    const log = (line: string): void => t.diagnostic(line);
    const rehearsed = release === "3.7";
    const options = { release, tls: true, users: true, rehearsed, restSeconds: 1, log };
    await withMove(options, async (moving, surroundings) => {
      const amounts = { rate: 100, writers: 10, watches: 2, leases: 3 };
      const load = new ClientLoad({ ...surroundings, ...amounts });
      await load.start();
      await thereAndBack(options, moving, surroundings, [load]);
    });
  });
}
