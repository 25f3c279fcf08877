/**
 * A client port from outside: plain HTTP in both versions beside gRPC, health, reflection, and the
 * counters of what it refuses.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { Agent, request } from "node:https";
import { connect as connectSocket } from "node:net";
import { after, before, describe, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { fromUtf8, PutRequest, services } from "@quorate/proto";
import protobuf from "protobufjs";
import descriptor from "protobufjs/ext/descriptor/index.js";
import { startCluster, type TestCluster } from "../support/cluster.ts";

const HEALTH = "/grpc.health.v1.Health";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const SERVING = Buffer.from([8, 1]);
const NOT_SERVING = Buffer.from([8, 2]);
const same = (bytes: Buffer): Buffer => bytes;

interface Vars {
  readonly cmdline: readonly string[];
  readonly memstats: Readonly<Record<string, number>>;
  readonly "raft.status": {
    readonly id: string;
    readonly term: number;
    readonly commit: number;
    readonly applied: number;
    readonly progress: Readonly<
      Record<string, { readonly match: number; readonly next: number; readonly state: string }>
    >;
  };
}

describe("plain HTTP over TLS", () => {
  let cluster: TestCluster;
  before(async () => {
    cluster = await startCluster({ size: 1, tls: true });
  });
  after(() => cluster?.destroy());

  test("ALPN picks HTTP/2, and HTTP/1.1 where a client wants that", async () => {
    const url = cluster.endpoints[0];
    const session = connect(url, cluster.identity);
    const stream = session.request({ ":path": "/version" });
    const [headers] = await once(stream, "response");
    let text = "";
    for await (const chunk of stream) text += chunk;
    session.close();
    assert.equal(headers[":status"], 200);
    assert.match(text, /"etcdserver":"3\.7/);
    const old = request(`${url}/version`, {
      agent: new Agent({ ...cluster.identity, ALPNProtocols: ["http/1.1"] }),
    }).end();
    const [answer] = await once(old, "response");
    let oldText = "";
    for await (const chunk of answer) oldText += chunk;
    assert.deepEqual([answer.httpVersion, answer.statusCode, oldText], ["1.1", 200, text]);
  });
});

describe("beside etcd's services", () => {
  let cluster: TestCluster;
  let client: grpc.Client;
  before(async () => {
    cluster = await startCluster({ size: 1 });
    client = new grpc.Client(cluster.members[0].clientAddress, grpc.credentials.createInsecure());
  });
  after(async () => {
    client?.close();
    await cluster?.destroy();
  });

  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${cluster.endpoints[0]}/metrics`)).text();
    return Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
  };

  test("/debug/vars shows memory and Raft's state as etcd does, and nothing of the command line but the program's name", async () => {
    const answer = await fetch(`${cluster.endpoints[0]}/debug/vars`);
    assert.deepEqual(
      [answer.status, answer.headers.get("content-type")],
      [200, "application/json; charset=utf-8"],
    );
    const { cmdline, memstats, "raft.status": raft } = (await answer.json()) as Vars;
    assert.deepEqual(cmdline, ["quorate"]);
    assert.ok(memstats["HeapAlloc"] > 0 && memstats["Sys"] > memstats["HeapAlloc"]);
    const { id, term, commit, applied, progress, ...rest } = raft;
    assert.deepEqual(rest, { vote: id, lead: id, raftState: "StateLeader", leadtransferee: "0" });
    assert.ok(term >= 1 && commit >= applied && applied >= 1);
    assert.equal(progress[id].state, "StateReplicate");
    assert.ok(progress[id].match >= 1 && progress[id].next > progress[id].match);
    assert.equal(
      (await fetch(`${cluster.endpoints[0]}/debug/vars`, { method: "POST" })).status,
      405,
    );
  });

  test("reflection lists the services, and returns files from which their messages can be written", async () => {
    const asked = client.makeBidiStreamRequest(REFLECTION, same, same);
    const ask = async (field: number, text: string): Promise<Buffer> => {
      asked.write(Buffer.concat([Buffer.from([(field << 3) | 2, text.length]), Buffer.from(text)]));
      return (await once(asked, "data"))[0];
    };
    const listed = (await ask(7, "*")).toString("latin1");
    for (const { typeName } of services) assert.ok(listed.includes(typeName), typeName);
    for (const name of ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"])
      assert.ok(listed.includes(name), name);
    // Field 4 of the answer has the files, in its field 1 each.
    const reader = protobuf.Reader.create(await ask(4, "etcdserverpb.KV"));
    const files: Uint8Array[] = [];
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      if (tag !== 34) reader.skipType(tag & 7);
      else
        for (const end = reader.uint32() + reader.pos; reader.pos < end; )
          if (reader.uint32() === 10) files.push(reader.bytes());
    }
    asked.end();
    const { FileDescriptorSet, FileDescriptorProto } = descriptor as unknown as Record<
      string,
      protobuf.Type
    >;
    const set = FileDescriptorSet.fromObject({
      file: files.map((bytes) => FileDescriptorProto.toObject(FileDescriptorProto.decode(bytes))),
    });
    const root = (
      protobuf.Root as unknown as { fromDescriptor(set: protobuf.Message): protobuf.Root }
    )
      .fromDescriptor(set)
      .resolveAll();
    const message = { key: fromUtf8("k"), value: fromUtf8("v"), lease: 7 };
    const type = root.lookupType("etcdserverpb.PutRequest");
    assert.deepEqual(
      Buffer.from(type.encode(type.create(message)).finish()),
      Buffer.from(PutRequest.encode({ key: fromUtf8("k"), value: fromUtf8("v"), lease: 7n })),
    );
    const range = root.lookupService("etcdserverpb.KV").methods["Range"] as protobuf.Method;
    assert.equal(
      (range.resolve() as protobuf.Method).resolvedResponseType!.fullName,
      ".etcdserverpb.RangeResponse",
    );
  });

  test("what breaks the rules of HTTP/2 is counted, and cut off", async () => {
    const before = await metric("quorate_rpc_http2_connection_errors_total");
    const { hostname, port } = new URL(cluster.endpoints[0]);
    const socket = connectSocket(Number(port), hostname);
    // Settings of a length that there is not.
    socket.write(
      Buffer.concat([
        Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1"),
        Buffer.from([0, 0, 1, 4, 0, 0, 0, 0, 0, 9]),
      ]),
    );
    socket.resume();
    await once(socket, "close");
    assert.equal(await metric("quorate_rpc_http2_connection_errors_total"), before + 1);
  });

  test("health says that the member serves, and notifies watches when it stops", async () => {
    const check = (service: string) =>
      new Promise<Buffer>((resolve, reject) => {
        const asked =
          service === ""
            ? Buffer.alloc(0)
            : Buffer.concat([Buffer.from([10, service.length]), Buffer.from(service)]);
        client.makeUnaryRequest(`${HEALTH}/Check`, same, same, asked, (error, answer) =>
          error === null ? resolve(answer!) : reject(error),
        );
      });
    assert.deepEqual(await check(""), SERVING);
    await assert.rejects(check("absent"), { code: grpc.status.NOT_FOUND });
    const watch = client.makeServerStreamRequest(`${HEALTH}/Watch`, same, same, Buffer.alloc(0));
    const seen: Buffer[] = [];
    watch.on("data", (bytes: Buffer) => seen.push(bytes));
    watch.on("error", () => {});
    await once(watch, "data");
    const ended = new Promise<grpc.StatusObject>((resolve) => watch.on("status", resolve));
    await cluster.members[0].terminate();
    assert.equal((await ended).code, grpc.status.UNAVAILABLE);
    assert.deepEqual(seen, [SERVING, NOT_SERVING]);
  });
});
