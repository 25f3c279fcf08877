/**
 * The operator's calls to members, over real ones.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientError, connect } from "@quorate/client";
import { toUtf8 } from "@quorate/proto";
import { withCluster } from "../../../test/support/cluster.ts";
import { freePorts } from "../../../test/support/ports.ts";
import { until } from "../../../test/support/until.ts";
import type { Target } from "../index.ts";
import { clientMembers as members } from "../node/client-members.ts";

/** Of permissions, by their numbers. */
const NAMES = ["READ", "WRITE", "READWRITE"];
const credentials = { certPem: "", keyPem: "", trustedPem: "" };

test("membership, states, a learner that comes and goes, leadership, users", async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    const urls = new Map(cluster.members.map(({ name, clientUrl }) => [name, clientUrl]));
    const target: Target = { urls, credentials };
    const first = (await members.membership(target))!;
    assert.equal(first.members.length, 3);
    assert.ok(first.members.every(({ isLearner, hasStarted }) => !isLearner && hasStarted));
    assert.equal(first.asksForUsers, false);

    const [one] = cluster.members;
    const reached = (await members.reach(target, one.name))!;
    assert.ok(first.members.some(({ id }) => id === reached.id));
    assert.ok(reached.index > 0 && reached.term > 0);

    const [port] = await freePorts(1);
    // Members have to be connected for some seconds before one is added.
    await until("the cluster takes a learner", async () => {
      try {
        await members.addLearner(target, `http://db-7.db-peer.ns.svc:${port}`);
        return true;
      } catch (error) {
        if (!(error instanceof ClientError) || error.code !== "Unhealthy") throw error;
        return false;
      }
    });
    const second = (await members.membership(target))!;
    const learner = second.members.find(({ isLearner }) => isLearner)!;
    assert.deepEqual(
      { ...learner, id: "" },
      {
        id: "",
        pod: "db-7",
        isLearner: true,
        hasStarted: false,
      },
    );
    assert.equal(await members.promote(target, learner.id), false, "it has not caught up");
    await members.remove(target, learner.id);
    assert.equal((await members.membership(target))!.members.length, 3);
    await assert.rejects(members.remove(target, learner.id), ClientError);

    const states = await Promise.all(
      cluster.members.map(async ({ name }) => [name, await members.reach(target, name)] as const),
    );
    const leading = states.find(([, state]) => state!.id === state!.leader)![0];
    const other = states.find(([name]) => name !== leading)!;
    await members.moveLeader(target, leading, other[1]!.id);
    await until("another leader", async () => {
      return (await members.reach(target, other[0]))!.leader === other[1]!.id;
    });

    const client = connect({ endpoints: [...urls.values()] });
    try {
      const granted = async (): Promise<string[]> => {
        const { perm } = await client.auth.roleGet("ann");
        return perm.map(({ permType, key, rangeEnd }) =>
          [NAMES[permType], toUtf8(key), toUtf8(rangeEnd)].join(" "),
        );
      };
      const app = { access: "readwrite", key: "app/", isPrefix: true } as const;
      const motd = { access: "read", key: "motd", isPrefix: false } as const;
      await members.keepUser(target, "ann", "hers", [app, motd]);
      assert.deepEqual((await client.auth.userGet("ann")).roles, ["ann"]);
      assert.deepEqual(await granted(), ["READWRITE app/ app0", "READ motd "]);
      const all = { access: "read", key: "", isPrefix: true } as const;
      await members.keepUser(target, "ann", undefined, [motd, all]);
      assert.deepEqual((await granted()).sort(), ["READ \0 \0", "READ motd "]);
      await members.dropUser(target, "ann");
      await members.dropUser(target, "ann");
      assert.deepEqual((await client.auth.userList()).users, []);
      assert.deepEqual((await client.auth.roleList()).roles, []);
    } finally {
      client.close();
    }

    for (const member of cluster.members.slice(1)) await member.kill();
    assert.equal(await members.membership(target), undefined, "there is no quorum");
    assert.notEqual(await members.reach(target, one.name), undefined, "but a member");
    assert.equal(await members.reach(target, cluster.members[1].name), undefined);
  });
});
