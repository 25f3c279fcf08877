/** quoratectl recover: a quorum that is really lost, with real members. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { quoratectl } from "@quorate/ctl";
import { ClusterService, fromLatin1, KeyValue, KVService } from "@quorate/proto";
import { withCluster } from "../support/cluster.ts";
import { runInProcess } from "../support/ctl-io.ts";
import { quorate } from "../support/executables.ts";
import { clientOf } from "../support/snapshots.ts";
import { until } from "../support/until.ts";

test("the survivor with the most goes on alone, as soon as the others are known to be lost", async () => {
  await withCluster({ executable: quorate, size: 5 }, async (cluster) => {
    const { members } = cluster;
    const recover = (...args: readonly string[]) => runInProcess(quoratectl, ["recover", ...args]);
    // Repeated: a leader that has just been killed fails the puts that wait.
    const put = async (value: string): Promise<void> => {
      const client = clientOf(cluster, 1);
      const request = { key: fromLatin1("k"), value: fromLatin1(value) };
      await until(`a leader takes the put of ${value}`, () =>
        client.call(KVService.methods.Put, request).then(
          () => true,
          () => false,
        ),
      );
      client.close();
    };
    const dirs = members.map((member) => member.options.dataDir);
    const given = (...indexes: number[]) => indexes.map((i) => `--data-dir=${dirs[i]}`);

    await put("1");
    const asked = `--endpoints=${cluster.endpoints.join(",")}`;
    assert.match((await recover(asked)).stderr, /knows a leader: nothing is lost/);
    assert.match((await recover("--auto", ...given(0))).stderr, /a member runs on it: stop it/);

    // m0 falls behind; then three of five are gone for good.
    await members[0].kill();
    await put("2");
    for (const lost of [2, 3, 4]) {
      await members[lost].kill();
      rmSync(dirs[lost], { recursive: true });
    }
    const left = [`--endpoints=${cluster.endpoints[1]}`, "--lost=m0,m2,m3,m4"];
    await until("m1 knows no leader", async () => (await recover(...left)).code === 0);
    const shown = await recover(...left);
    assert.equal(shown.code, 0, shown.stderr);
    assert.match(shown.stdout, /goes on with m1 alone\. m\d, m\d, m\d, m\d leave it/);
    assert.match(shown.stdout, /quoratectl recover --auto --data-dir=DATA-DIR --lost=/);
    await members[1].kill();

    const unsaid = await recover("--auto", ...given(0, 1), "--lost=m2,m3");
    assert.equal(unsaid.code, 1);
    assert.match(unsaid.stderr, /no recovery: m4 may have more than those given/);
    const lost = "--lost=m2,m3,m4";
    const dry = await recover(...given(0, 1), lost);
    assert.match(dry.stdout, /goes on with m1 alone.*What is lost: .*Nothing was changed/s);
    const done = await recover("--auto", ...given(0, 1), lost);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Done\. Start m1 as before/);
    // Interrupted and repeated: the same.
    assert.match((await recover("--auto", ...given(0, 1), lost)).stdout, /Done\. Start m1/);

    members[1].start();
    await members[1].waitReady();
    const client = clientOf(cluster, 1);
    const { kvs } = await client.call(KVService.methods.Range, { key: fromLatin1("k") });
    assert.equal(Buffer.from(KeyValue.decode(kvs[0]).value).toString(), "2");
    const list = await client.call(ClusterService.methods.MemberList, {});
    assert.deepEqual(
      list.members.map(({ name, isLearner }) => [name, isLearner]),
      [["m1", false]],
    );
    client.close();
    await put("3");
  });
});
