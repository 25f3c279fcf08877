/**
 * The load generator against Node's own HTTP/2 server: what it sends must be read as gRPC calls,
 * and what comes back counted right.
 */
import assert from "node:assert/strict";
import * as http2 from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { KVService, PutRequest, RangeRequest, toLatin1 } from "@quorate/proto";
import { getTemplate, UnaryLoad } from "../../bench/calls.ts";
import { Connection } from "../../bench/connection.ts";
import { keysOf } from "../../bench/keys.ts";
import { runLoad } from "../../bench/load.ts";
import { figureTable, loadTable, type Measurement, median } from "../../bench/report.ts";

interface Call {
  readonly headers: http2.IncomingHttpHeaders;
  readonly message: Buffer;
}

/**
 * A server that hands each call to `answer` and sends back its message in two frames, or a bare
 * error where it returns undefined.
 */
async function withServer(
  answer: (call: Call) => Buffer | undefined,
  body: (url: string) => Promise<void>,
): Promise<void> {
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
        stream.respond(
          { ":status": 200, "content-type": "application/grpc", "grpc-status": "14" },
          { endStream: true },
        );
        return;
      }
      stream.respond(
        { ":status": 200, "content-type": "application/grpc" },
        { waitForTrailers: true },
      );
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

test("calls arrive as gRPC calls, first and later ones alike, whichever method, and answers come back whole", async () => {
  const calls: Call[] = [];
  const big = Buffer.alloc(70_000, 7);
  const { Put, Range } = KVService.methods;
  await withServer(
    (call) => {
      calls.push(call);
      return calls.length === 2
        ? big
        : calls.length === 3
          ? undefined
          : Buffer.from([calls.length]);
    },
    async (url) => {
      const answers: [number, boolean, number, string | undefined][] = [];
      let wake: () => void = () => {};
      const connection = await Connection.open({
        url,
        paths: [Range.path, Put.path],
        identity: {},
        done: (slot, ok, sizeBytes, message) => {
          answers.push([slot, ok, sizeBytes, message?.toString("latin1")]);
          wake();
        },
        failed: (error) => assert.fail(error),
        keepsMessages: true,
      });
      const message = PutRequest.encode({
        key: Buffer.from("xxxxxxxx"),
        value: Buffer.from("v"),
      }).slice();
      for (let index = 0; index < 6; index++) {
        const answered = new Promise<void>((resolve) => (wake = resolve));
        connection.call(
          index,
          { path: index % 2, message, patchAt: [2] },
          Buffer.from(`key ${index}...`),
        );
        connection.flush();
        await answered;
      }
      connection.close();
      assert.deepEqual(answers, [
        [0, true, 1, "\x01"],
        [1, true, 70_000, big.toString("latin1")],
        [2, false, 0, undefined],
        [3, true, 1, "\x04"],
        [4, true, 1, "\x05"],
        [5, true, 1, "\x06"],
      ]);
    },
  );
  assert.equal(calls.length, 6);
  for (const [index, { headers, message }] of calls.entries()) {
    assert.equal(headers[":method"], "POST");
    assert.equal(headers[":path"], index % 2 === 0 ? Range.path : Put.path);
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
      const keys = keysOf("k", 50);
      const template = getTemplate(true);
      let at = 0;
      const load = new UnaryLoad({ urls: [url], identity: {} }, 20, 4, () => ({
        template,
        key: keys[at++ % 50],
        revisions: 1,
      }));
      const result = await runLoad(load, {
        warmUpMs: 50,
        durationMs: 1500,
        onPhase: (phase) => phases.push(phase),
      });
      assert.deepEqual(phases, ["measure", "end"]);
      assert.equal(result.callsInAll, served - refused);
      assert.equal(load.revisions, served - refused);
      assert.equal(result.failed, refused);
      assert.ok(result.answered > 0 && result.answered < result.callsInAll);
      assert.ok(result.p50Ms > 0 && result.p99Ms >= result.p50Ms);
    },
  );
  assert.ok(seen.size > 10 && [...seen].every((key) => /^k\d{7}$/.test(key)));
});

test("a connection that breaks ends the load with an error", async () => {
  const server = createServer((socket) => socket.once("data", () => socket.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const urls = [`http://127.0.0.1:${(server.address() as AddressInfo).port}`];
    const step = {
      template: getTemplate(false),
      key: Buffer.from("k0000000"),
      revisions: 0,
    } as const;
    const load = runLoad(new UnaryLoad({ urls, identity: {} }, 1, 1, () => step), {
      warmUpMs: 1000,
      durationMs: 1000,
    });
    await assert.rejects(load, /closed|ECONNRESET|EPIPE/);
  } finally {
    server.close();
  }
});

test("the tables show medians, ratios of rounds, and the goals that are missed", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.ok(Number.isNaN(median([])));
  const one = (
    executable: "quorate" | "etcd",
    round: number,
    ratePerS: number,
    residentMiB = 100,
  ): Measurement => ({
    round,
    executable,
    members: 3,
    tls: false,
    load: "put",
    goal: 2,
    ratePerS,
    p50Ms: 1,
    p99Ms: 2,
    cpuSPerThousand: 0.5,
    residentMiB,
    peakMiB: 100,
    generatorCpu: 0.25,
    failed: 0,
  });
  const cellsOf = (table: string): string[][] => {
    const lines = table.split("\n");
    assert.equal(new Set(lines.map((line) => line.length)).size, 1);
    return lines.map((line) => line.split("|").map((cell) => cell.trim()));
  };
  const cells = cellsOf(
    loadTable([
      one("quorate", 1, 3000),
      one("etcd", 1, 1000),
      one("etcd", 2, 4000),
      one("quorate", 2, 4000),
    ]),
  );
  assert.deepEqual(cells[2].slice(1, 7), ["3", "plain", "put", "quorate", "3,500", "1.00"]);
  assert.deepEqual(cells[3].slice(1, 7), ["3", "plain", "put", "etcd", "2,500", "1.00"]);
  assert.deepEqual(cells[4].slice(1, 7), ["3", "plain", "put", "ratio", "2.00 x", "1.00 x"]);
  assert.equal(cells[4].at(-2), "met");
  assert.equal(
    cellsOf(loadTable([one("quorate", 1, 1000, 101), one("etcd", 1, 1000)]))[4].at(-2),
    "missed: rate 2.0 x, memory",
  );

  const figure = (executable: "quorate" | "etcd", value: number) => ({
    name: "rest",
    round: 1,
    executable,
    value,
    goal: "etcd" as const,
  });
  assert.deepEqual(cellsOf(figureTable([figure("quorate", 3), figure("etcd", 2)]))[2], [
    "",
    "rest",
    "3.00",
    "2.00",
    "1.50 x",
    "1.00 x: missed",
    "",
  ]);
  assert.deepEqual(cellsOf(figureTable([figure("quorate", 3)]))[2], [
    "",
    "rest",
    "3.00",
    "-",
    "-",
    "",
    "",
  ]);
});
