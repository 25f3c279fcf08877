/**
 * Three members with the certificates that scripts/certs.sh makes, and a client with other
 * certificates of that directory, or with a member's that was stolen and an id that no member has:
 * nothing of theirs is heard.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SeededRandom, silentLogger } from "@quorate/host";
import { nodeClock, type TlsOptions } from "@quorate/host/node";
import { fromLatin1, idFromHex, KVService, MaintenanceService, raftpb } from "@quorate/proto";
import { Http2Transport } from "@quorate/transport/node";
import { RecordingListener } from "@quorate/transport/testing";
import { Agent, request } from "undici";
import { withCluster } from "../support/cluster.ts";
import { quorate } from "../support/executables.ts";
import { clientOf } from "../support/snapshots.ts";
import { until } from "../support/until.ts";

const UNKNOWN_ID = 0x99n;

test("clients' certificates do not speak on the peer port, and a member that does not exist is not heard", async () => {
  await withCluster({ executable: quorate, size: 3, tls: true }, async (cluster) => {
    const certs = cluster.certs!;
    const read = (path: string): string => readFileSync(path, "utf8");
    const pairOf = (cert: string, key: string) => ({ cert: read(cert), key: read(key) });
    const [client, server, peer] = [
      pairOf(certs.client, certs.clientKey),
      pairOf(certs.server, certs.serverKey),
      pairOf(certs.peer, certs.peerKey),
    ];
    const urls = cluster.members.map((member) => member.options.peerUrl);
    const members = async (pair: { cert: string; key: string }, url: string) => {
      const dispatcher = new Agent({
        connect: { ca: read(certs.peerCa), ...pair },
        allowH2: false,
      });
      try {
        const { headers, body } = await request(`${url}/members`, { dispatcher });
        return {
          clusterId: idFromHex(String(headers["x-etcd-cluster-id"]))!,
          members: (await body.json()) as { id: number }[],
        };
      } finally {
        await dispatcher.destroy();
      }
    };
    for (const url of urls) {
      await assert.rejects(members(client, url), "a client's certificate");
      await assert.rejects(members(server, url), "a server's certificate");
    }
    const { clusterId } = await members(peer, urls[0]);

    const statusOf = async () => {
      const all = await Promise.all(
        cluster.members.map(async (_, i) => {
          const one = clientOf(cluster, i);
          const status = await one.call(MaintenanceService.methods.Status, {});
          one.close();
          return status;
        }),
      );
      return all.map(({ raftTerm, header, leader }) => ({
        term: raftTerm,
        id: header!.memberId,
        leader,
      }));
    };
    const before = await statusOf();
    for (const [pair, ca] of [
      [client, certs.ca],
      [server, certs.ca],
      [peer, certs.peerCa],
    ] as const) {
      const tls: TlsOptions = {
        certPem: pair.cert,
        keyPem: pair.key,
        trustedCaPem: read(certs.peerCa) + read(ca),
      };
      const outsider = new Http2Transport(
        {
          selfId: UNKNOWN_ID,
          clusterId,
          localUrls: ["https://127.0.0.1:1"],
          listen: [],
          tls,
          serverVersion: "3.7.0",
          minClusterVersion: "3.0.0",
          mostRetryMs: 50,
        },
        {
          clock: nodeClock,
          random: new SeededRandom(1n),
          logger: silentLogger,
          listener: new RecordingListener(),
          http: () => ({ status: 404, headers: {}, body: "" }),
        },
      );
      for (const [i, { id }] of before.entries()) outsider.addPeer(id, [urls[i]]);
      const message = (to: bigint, type: raftpb.MessageType) =>
        raftpb.Message.create({
          type,
          to,
          from: UNKNOWN_ID,
          term: 1_000_000,
          entries: [raftpb.Entry.create({ data: new Uint8Array([0x08]) })],
        });
      const { MsgProp, MsgHeartbeat, MsgVote, MsgApp } = raftpb.MessageType;
      for (let round = 0; round < 20; round++) {
        for (const { id } of before)
          outsider.send([MsgProp, MsgHeartbeat, MsgVote, MsgApp].map((type) => message(id, type)));
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      assert.ok(outsider.peers().every(({ activeSinceMs }) => activeSinceMs === undefined));
      await outsider.close();
    }
    for (const member of cluster.members) {
      await until(`${member.name} says which peer it has refused`, () =>
        /rejected stream from an unknown peer: no member of the cluster knows it.*"remote-peer-id":"99"/.test(
          member.log(),
        ),
      );
    }
    const writer = clientOf(cluster);
    await writer.call(KVService.methods.Put, { key: fromLatin1("k"), value: fromLatin1("v") });
    writer.close();
    const after = await statusOf();
    assert.deepEqual(
      after.map(({ id }) => id),
      before.map(({ id }) => id),
    );
    assert.ok(
      after.every(({ term, leader }) => term < 1000 && leader !== UNKNOWN_ID),
      JSON.stringify(after.map(({ term }) => term)),
    );
    assert.ok(cluster.members.every((member) => member.isRunning));
  });
});
