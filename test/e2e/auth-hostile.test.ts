/**
 * Hostile calls while users and roles are enforced, by clients without a user and by a user without
 * permission: malformed, huge, in crowds, over each way in. Nothing is served, nothing stays
 * behind, and users with permission go on.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import {
  ElectionService,
  fromUtf8,
  KVService,
  LeaseService,
  LockService,
  type MethodDescriptor,
  services,
  TxnRequest,
  toUtf8,
} from "@quorate/proto";
import { AuthClient, CHEAP_LOGINS, enableAuth, soon, Watch } from "../support/auth.ts";
import { sendHttp } from "../support/auth-paths.ts";
import { openChannel } from "../support/client.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";

const b = fromUtf8;
const { Put, Range, Txn } = KVService.methods;
const CROWD = 300;

describe("hostile clients without permission", () => {
  let cluster: TestCluster;
  let address: string;
  let ann: AuthClient;
  let bob: AuthClient;

  before(async () => {
    const flags = [...CHEAP_LOGINS, "--enable-v2"];
    cluster = await startCluster({ size: 1, flags });
    address = cluster.members[0].clientAddress;
    ann = new AuthClient(address);
    bob = new AuthClient(address);
    await enableAuth(ann, { ann: [["ann/", "ann0", "readwrite"]], bob: [] });
    await ann.login("ann");
    await bob.login("bob");
  });
  after(async () => {
    ann?.close();
    bob?.close();
    await cluster?.destroy();
  });

  const served = () => ann.call(Put, { key: b("ann/k"), value: b("v") });

  async function metric(name: string): Promise<number> {
    const { text } = await sendHttp(address, { method: "GET", path: "/metrics" }, undefined);
    const found = text.split("\n").find((line) => line.startsWith(`${name} `));
    assert.ok(found !== undefined, name);
    return Number(found.split(" ")[1]);
  }

  /** Sends bytes as they are. @returns the status */
  function raw(channel: grpc.Client, method: MethodDescriptor, bytes: Buffer, token?: string) {
    const metadata = new grpc.Metadata();
    if (token !== undefined) metadata.set("token", token);
    const self = (buffer: Buffer) => buffer;
    const options = { deadline: Date.now() + 20_000 };
    return new Promise<{ code: number; messages: number }>((resolve) => {
      let messages = 0;
      const { path } = method;
      if (!method.requestStream && !method.responseStream) {
        channel.makeUnaryRequest(path, self, self, bytes, metadata, options, (error) =>
          resolve({ code: error?.code ?? 0, messages: error === null ? 1 : 0 }),
        );
        return;
      }
      const stream = method.requestStream
        ? channel.makeBidiStreamRequest(path, self, self, metadata, options)
        : channel.makeServerStreamRequest(path, self, self, bytes, metadata, options);
      stream.on("data", () => messages++);
      stream.on("error", () => {});
      stream.once("status", ({ code }: grpc.StatusObject) => resolve({ code, messages }));
      if (method.requestStream) {
        const both = stream as grpc.ClientDuplexStream<Buffer, Buffer>;
        both.write(bytes);
        both.end();
      }
    });
  }

  test("malformed requests of every method are refused, with a user and without", async () => {
    const channel = openChannel(address, {});
    const methods = services.flatMap((one) => Object.values(one.methods) as MethodDescriptor[]);
    const garbage = [Buffer.alloc(64, 0xff), Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f])];
    try {
      for (const method of methods) {
        for (const token of [undefined, bob.token]) {
          for (const bytes of garbage) {
            const { code, messages } = await raw(channel, method, bytes, token);
            assert.ok(code !== 0 && messages === 0, `${method.path}: ${code}`);
          }
        }
      }
      await served();
    } finally {
      channel.close();
    }
  });

  test("huge requests and responses are not worked for", async () => {
    const huge = b("v".repeat(1_000_000));
    const deep = (depth: number): object =>
      depth === 0
        ? { failure: [{ request: { case: "requestPut", value: { key: huge, value: b("") } } }] }
        : { success: [{ request: { case: "requestTxn", value: deep(depth - 1) } }] };
    const whole = TxnRequest.decode(TxnRequest.encode(deep(20) as never).slice());
    for (const client of [new AuthClient(address), bob]) {
      const expected = client === bob ? 7 : 3;
      const everything = { key: b("\0"), rangeEnd: b("\0"), serializable: true };
      const calls = [
        client.try(Range, everything),
        client.try(KVService.methods.RangeStream, everything),
        client.try(Put, { key: huge, value: b("") }),
        client.try(Txn, whole),
        client.try(LockService.methods.Lock, { name: huge }),
      ];
      const codes = (await Promise.all(calls)).map(({ code }) => code);
      // Errors of locks have no code of their own, as in etcd.
      assert.deepEqual(codes, [expected, expected, expected, expected, 2]);
      if (client !== bob) client.close();
    }
    await served();
  });

  test("crowds of watches, locks and campaigns that are refused leave nothing behind", async () => {
    const watches = [...Array(CROWD).keys()].map((i) => new Watch(bob, `ann/${i}`, "\0"));
    await soon(() => watches.every(({ responses }) => responses.length > 0));
    assert.ok(watches.every(({ cancelReason }) => /permission denied/.test(cancelReason ?? "")));
    const { ID: lease } = await bob.call(LeaseService.methods.LeaseGrant, { TTL: 600 });
    const name = b("ann/lock");
    const contests = await Promise.all(
      [...Array(CROWD).keys()].map((i) =>
        i % 2 === 0
          ? bob.try(LockService.methods.Lock, { name, lease })
          : bob.try(ElectionService.methods.Campaign, { name, lease, value: b("v") }),
      ),
    );
    assert.ok(contests.every(({ text }) => /permission denied/.test(text)));
    for (const watch of watches) watch.close();
    assert.equal(await metric("etcd_debugging_mvcc_watcher_total"), 0);
    assert.equal(await metric("quorate_contest_bytes"), 0);
    const { kvs } = await ann.call(Range, { key: b("ann/"), rangeEnd: b("ann0") });
    assert.ok(kvs.every((kv) => !toUtf8(kv).includes("lock")));
    await served();
  });

  test("the same over HTTP: long lists, long bodies, waits, forms, and the gateway", async () => {
    const long = "v".repeat(500_000);
    const form = { type: "application/x-www-form-urlencoded" };
    const token = `Bearer ${bob.token}`;
    for (const [one, without, denied] of [
      [{ method: "GET", path: "/kv/?prefix" }, 401, 403],
      [{ method: "PUT", path: "/kv/ann/k", body: long }, 401, 403],
      [{ method: "POST", path: "/txn", body: `[{"put":"ann/k","value":"${long}"}]` }, 401, 403],
      [{ method: "GET", path: "/watch/?prefix" }, 401, 403],
      [{ method: "GET", path: "/v2/keys/?recursive=true" }, 401, 401],
      [{ method: "GET", path: "/v2/keys/ann?wait=true" }, 401, 401],
      [{ method: "PUT", path: "/v2/keys/ann/k", body: `value=${long}`, ...form }, 401, 401],
      [
        { method: "POST", path: "/v3/kv/range", body: '{"key":"AA==","range_end":"AA=="}' },
        400,
        403,
      ],
      [{ method: "POST", path: "/v3/maintenance/snapshot", body: "{}" }, 400, 403],
    ] as const) {
      assert.equal((await sendHttp(address, one, undefined)).status, without, one.path);
      assert.equal((await sendHttp(address, one, token)).status, denied, one.path);
    }
    await served();
  });

  test("what is open needs no work: metrics and health beside a crowd of refused calls", async () => {
    const calls = [...Array(CROWD).keys()].map(() => bob.try(Range, { key: b("ann/k") }));
    const pages = ["/metrics", "/health", "/version"].map((path) =>
      sendHttp(address, { method: "GET", path }, undefined),
    );
    assert.deepEqual(
      (await Promise.all(pages)).map(({ status }) => status),
      [200, 200, 200],
    );
    assert.ok((await Promise.all(calls)).every(({ code }) => code === 7));
    await served();
  });
});
