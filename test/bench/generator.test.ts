/** The load generator against Node's own HTTP/2 server: what it sends must be read as gRPC calls, and what comes back counted right. */
import assert from "node:assert/strict";
import * as http2 from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { KVService, PutRequest, RangeRequest, toLatin1 } from "@quorate/proto";
import { Connection } from "../../bench/connection.ts";
import { createKeySpace, runLoad } from "../../bench/load.ts";
import { formatTable, type Measurement, median } from "../../bench/report.ts";

interface Call {
  readonly headers: http2.IncomingHttpHeaders;
  readonly message: Buffer;
}

/** A server that hands each call to `answer` and sends back its message in two frames, or a bare error where it gives undefined. */
async function withServer(answer: (call: Call) => Buffer | undefined, body: (url: string) => Promise<void>): Promise<void> {
  const server = http2.createServer();
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => sessions.add(session));
  server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      const bytes = Buffer.concat(chunks);
      assert.equal(bytes.readUInt32BE(1), bytes.length - 5);
      const message = answer({ headers, message: bytes.subarray(5) });
      if (message === undefined) {
        stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "14" }, { endStream: true });
        return;
      }
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(message.length, 1);
      stream.write(Buffer.concat([prefix, message.subarray(0, 1)]));
      stream.end(message.subarray(1));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await body(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    for (const session of sessions) session.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

test("calls arrive as gRPC calls, first and later ones alike, and answers come back whole", async () => {
  const calls: Call[] = [];
  const big = Buffer.alloc(70_000, 7);
  await withServer(
    (call) => {
      calls.push(call);
      return calls.length === 2 ? big : calls.length === 3 ? undefined : Buffer.from([calls.length]);
    },
    async (url) => {
      const answers: [number, boolean, string | undefined][] = [];
      let wake: () => void = () => {};
      const connection = await Connection.open(
        url,
        KVService.methods.Put.path,
        {},
        (slot, ok, message) => {
          answers.push([slot, ok, message?.toString("latin1")]);
          wake();
        },
        (error) => assert.fail(error),
      );
      const message = PutRequest.encode({ key: Buffer.from("xxxxxxxx"), value: Buffer.from("v") });
      for (let index = 0; index < 4; index++) {
        const answered = new Promise<void>((resolve) => (wake = resolve));
        connection.call(index, message, Buffer.from(`key ${index}...`), 2);
        connection.flush();
        await answered;
      }
      connection.close();
      assert.deepEqual(answers, [
        [0, true, "\x01"],
        [1, true, big.toString("latin1")],
        [2, false, undefined],
        [3, true, "\x04"],
      ]);
    },
  );
  for (const [index, { headers, message }] of calls.entries()) {
    assert.equal(headers[":method"], "POST");
    assert.equal(headers[":path"], "/etcdserverpb.KV/Put");
    assert.equal(headers[":scheme"], "http");
    assert.match(headers[":authority"]!, /^127\.0\.0\.1:/);
    assert.equal(headers["content-type"], "application/grpc");
    assert.equal(headers["te"], "trailers");
    const { key, value } = PutRequest.decode(message);
    assert.deepEqual([toLatin1(key), toLatin1(value)], [`key ${index}...`, "v"]);
  }
});

test("a load keeps its clients busy, waits for all answers, and counts what it sent", async () => {
  let served = 0;
  let refused = 0;
  const seen = new Set<string>();
  await withServer(
    ({ message }) => {
      const request = RangeRequest.decode(message);
      assert.equal(request.serializable, true);
      seen.add(Buffer.from(request.key).toString("latin1"));
      if (++served % 10 !== 0) return Buffer.from([10, 0]);
      refused++;
      return undefined;
    },
    async (url) => {
      const phases: string[] = [];
      const result = await runLoad({
        operation: "get-serializable",
        clients: 20,
        connections: 4,
        endpoints: [url],
        identity: {},
        warmUpMs: 50,
        durationMs: 200,
        keys: createKeySpace(50, 1),
        onPhase: (phase) => phases.push(phase),
      });
      assert.deepEqual(phases, ["measure", "end"]);
      assert.equal(result.answeredInAll, served - refused);
      assert.equal(result.failed, refused);
      assert.ok(result.answered > 0 && result.answered < result.answeredInAll);
      assert.ok(result.p50Ms > 0 && result.p99Ms >= result.p50Ms);
    },
  );
  assert.ok(seen.size > 10 && [...seen].every((key) => /^\d{8}$/.test(key)));
});

test("a connection that breaks ends the load with an error", async () => {
  const server = createServer((socket) => socket.once("data", () => socket.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const load = runLoad({
      operation: "get",
      clients: 1,
      connections: 1,
      endpoints: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`],
      identity: {},
      warmUpMs: 1000,
      durationMs: 1000,
      keys: createKeySpace(1, 1),
      onPhase: () => {},
    });
    await assert.rejects(load, /closed|ECONNRESET|EPIPE/);
  } finally {
    server.close();
  }
});

test("the table shows medians, and ratios of rounds", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.ok(Number.isNaN(median([])));
  const one = (executable: "quorate" | "etcd", round: number, ratePerS: number): Measurement => ({
    round,
    executable,
    members: 3,
    load: "put",
    ratePerS,
    p50Ms: 1,
    p99Ms: 2,
    cpuSPerThousand: 0.5,
    residentMiB: 100,
    generatorCpu: 0.25,
    failed: 0,
  });
  const table = formatTable([one("quorate", 1, 3000), one("etcd", 1, 1000), one("etcd", 2, 4000), one("quorate", 2, 4000)]);
  const cells = table.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
  assert.deepEqual(cells[2]!.slice(1, 6), ["3", "put", "quorate", "3,500", "1.00"]);
  assert.deepEqual(cells[3]!.slice(1, 6), ["3", "put", "etcd", "2,500", "1.00"]);
  assert.deepEqual(cells[4]!.slice(1, 6), ["3", "put", "ratio", "2.00 x", "1.00 x"]);
  assert.equal(new Set(table.split("\n").map((line) => line.length)).size, 1);
});
