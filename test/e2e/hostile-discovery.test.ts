/**
 * A new member whose discovery service is hostile: silent, slow, endless, huge, elsewhere, garbage,
 * or full of what is no member. It says so and tries again, or ends with a reason that fits on a
 * screen; it stays small, asks seldom, follows nobody, and ends when it is told to.
 *
 * Discovery by a URL of version 2 is refused before any of this (--discovery, as in etcd 3.6).
 * @slow
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Event, fromLatin1, KeyValue, RangeResponse, WatchResponse } from "@quorate/proto";
import { quorate } from "../support/executables.ts";
import { TestMember } from "../support/member.ts";
import { freePorts } from "../support/ports.ts";
import { until } from "../support/until.ts";

const dir = mkdtempSync(join(tmpdir(), "quorate-hostile-discovery-"));
const PREFIX = "/_etcd/registry/tok";
const MAX_RESIDENT_KB = 400 * 1024;
/** More would be a flood: lines of one start, and of what it retries meanwhile. */
const MAX_LOG_BYTES = 200_000;
const RETRIES = /retry connecting to discovery service/;

interface Service {
  readonly port: number;
  readonly calls: () => number;
  close(): void;
}

/** Listens, and ends with all that it holds open. */
async function listening(server: Server, calls: () => number): Promise<Service> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    calls,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A service that does this with each connection. */
function overTcp(serve: (socket: Socket) => void): Promise<Service> {
  let calls = 0;
  return listening(
    createServer((socket) => {
      calls++;
      serve(socket);
    }),
    () => calls,
  );
}

type Answer = (stream: ServerHttp2Stream, method: string) => void;

/** A service that does this with each call over HTTP/2. */
function overHttp2(answer: Answer): Promise<Service> {
  let calls = 0;
  const server = createHttp2();
  server.on("stream", (stream, headers) => {
    calls++;
    stream.on("error", () => {});
    answer(stream as ServerHttp2Stream, String(headers[":path"]));
  });
  return listening(server as unknown as Server, () => calls);
}

function frame(message: Uint8Array, length = message.length, flag = 0): Buffer {
  const head = Buffer.from([flag, 0, 0, 0, 0]);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}

const GRPC = { ":status": 200, "content-type": "application/grpc" };

function begin(stream: ServerHttp2Stream): void {
  stream.respond(GRPC, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
}

/** Answers a call with these bytes. */
function send(stream: ServerHttp2Stream, ...frames: Uint8Array[]): void {
  begin(stream);
  stream.end(Buffer.concat(frames));
}

const record = (key: string, value: string, revision = 2): Uint8Array =>
  KeyValue.encode({
    key: fromLatin1(key),
    value: fromLatin1(value),
    createRevision: revision,
    modRevision: revision,
    version: 1,
    lease: 0n,
  });

const rangeOf = (...kvs: readonly Uint8Array[]): Buffer =>
  frame(RangeResponse.encode(RangeResponse.create({ kvs: [...kvs], count: kvs.length })));

/** A service whose number of members is `size`, and whose members are these. */
function registry(size: string, members: () => readonly Uint8Array[], watch: Answer): Answer {
  let asked = 0;
  return (stream, method) => {
    if (method.endsWith("/Watch")) watch(stream, method);
    else if (method.endsWith("/Range"))
      send(
        stream,
        asked++ === 0 ? rangeOf(record(`${PREFIX}/_config/size`, size)) : rangeOf(...members()),
      );
    else send(stream, frame(new Uint8Array()));
  };
}

const junk = (count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, i) => record(`${PREFIX}/members/x${i}`, "no url"));

/** Events without end that are no news, as fast as they are read. */
function flood(stream: ServerHttp2Stream): void {
  begin(stream);
  const events = junk(1000).map((kv) => Event.encode(Event.create({ kv })));
  const bytes = frame(WatchResponse.encode(WatchResponse.create({ watchId: 0n, events } as never)));
  const more = (): void => {
    while (!stream.destroyed && stream.write(bytes));
  };
  stream.on("drain", more);
  more();
}

interface Case {
  readonly name: string;
  readonly serve: () => Promise<Service>;
  /** A line of the member's log. */
  readonly says: RegExp;
  /** Whether the member ends by itself. */
  readonly ends?: boolean;
  /** Whether it is left alone for a while: it must not ask all the time. */
  readonly lasts?: boolean;
}

let strayed = 0;
const cases: readonly Case[] = [
  { name: "silent", serve: () => overTcp(() => {}), says: RETRIES },
  {
    name: "garbage",
    serve: () => overTcp((socket) => socket.end(Buffer.alloc(1000, 0xfe))),
    says: RETRIES,
  },
  {
    name: "endless",
    serve: () =>
      overTcp((socket) => {
        const bytes = Buffer.alloc(65_536, 0x41);
        const more = (): void => {
          while (!socket.destroyed && socket.write(bytes));
        };
        socket.on("drain", more);
        more();
      }),
    says: RETRIES,
  },
  {
    name: "redirecting over HTTP/1",
    async serve() {
      const other = await overTcp(() => strayed++);
      after(() => other.close());
      const head = `HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:${other.port}/\r\ncontent-length: 0\r\n\r\n`;
      return overTcp((socket) => socket.write(head));
    },
    says: RETRIES,
  },
  {
    name: "redirecting over HTTP/2",
    async serve() {
      const other = await overTcp(() => strayed++);
      after(() => other.close());
      return overHttp2((stream) => {
        stream.respond({ ":status": 307, location: `http://127.0.0.1:${other.port}/` });
        stream.end();
      });
    },
    says: RETRIES,
  },
  {
    name: "slow: a byte at a time of a message of 4 GiB",
    serve: () =>
      overHttp2((stream) => {
        begin(stream);
        stream.write(frame(new Uint8Array(), 0xffff_ffff));
        const timer = setInterval(() => stream.write("x"), 50);
        stream.on("close", () => clearInterval(timer));
      }),
    says: RETRIES,
  },
  {
    name: "huge: a value of 8 MiB",
    serve: () =>
      overHttp2((stream) => send(stream, rangeOf(record("k", "9".repeat(8 * 1024 * 1024))))),
    says: /retry connecting to discovery service.*received message larger than max/,
  },
  {
    name: "garbage in a message",
    serve: () => overHttp2((stream) => send(stream, frame(Buffer.alloc(999, 0xff)))),
    says: RETRIES,
  },
  {
    name: "a compressed message that was not asked for",
    serve: () => overHttp2((stream) => send(stream, frame(Buffer.alloc(99, 0x1f), 99, 1))),
    says: RETRIES,
  },
  {
    name: "a size of a megabyte of digits",
    serve: () =>
      overHttp2((stream) => send(stream, rangeOf(record("size", "1".repeat(1024 * 1024))))),
    says: /discovery: size key is bad: .* must be a number from 1 to 100, got /,
    ends: true,
  },
  {
    name: "20,000 keys that are no members, and events without end",
    serve: () => overHttp2(registry("3", () => junk(20_000), flood)),
    says: /waiting for peers from discovery service/,
    lasts: true,
  },
  {
    name: "watches that end at once",
    serve: () =>
      overHttp2(
        registry(
          "3",
          () => junk(1),
          (stream) => send(stream),
        ),
      ),
    says: /waiting for peers from discovery service/,
    lasts: true,
  },
  {
    name: "members with URLs of half a megabyte",
    serve: () => {
      const url = `m=http://${"a".repeat(500_000)}:1`;
      return overHttp2(
        registry(
          "3",
          () => [record(`${PREFIX}/members/1`, url)],
          (stream) => send(stream),
        ),
      );
    },
    says: /invalid peer info returned from discovery service/,
  },
  {
    name: "one address for all members",
    serve: () => {
      let round = 0;
      const one = (id: string): Uint8Array =>
        record(`${PREFIX}/members/${id}`, `${id}=http://h:1`, 1);
      return overHttp2(
        registry(
          "2",
          // The place of this member is taken between its look and its registration.
          () => (round++ === 0 ? [] : [one("a"), one("b")]),
          (stream) => send(stream),
        ),
      );
    },
    says: /discovery: cluster is full/,
    ends: true,
  },
];

function residentKb(pid: number): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]);
}

async function attack(
  { name, serve, says, ends = false, lasts = false }: Case,
  at: number,
): Promise<void> {
  const service = await serve();
  const [client, peer] = await freePorts(2);
  const clientUrl = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  const member = new TestMember({
    name: `m${at}`,
    command: quorate.command,
    flags: [
      `--name=m${at}`,
      `--data-dir=${join(dir, `m${at}`)}`,
      `--listen-client-urls=${clientUrl}`,
      `--advertise-client-urls=${clientUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--discovery-endpoints=127.0.0.1:${service.port}`,
      "--discovery-token=tok",
      "--discovery-dial-timeout=500ms",
      "--discovery-request-timeout=500ms",
    ],
    env: {},
    clientUrl,
    peerUrl,
    dataDir: join(dir, `m${at}`),
    logFile: join(dir, `m${at}.log`),
    identity: {},
  });
  try {
    member.start();
    if (ends) {
      assert.equal((await member.exited).code, 1);
      assert.match(member.log(), says);
    } else {
      await until(`it says so (${name})`, () => {
        assert.ok(member.isRunning, member.logTail());
        return says.test(member.log());
      });
      const calls = service.calls();
      if (lasts) await delay(3000);
      const kb = residentKb(member.pid!);
      assert.ok(kb < MAX_RESIDENT_KB, `${kb} KiB`);
      const exit = await member.terminate(20_000);
      assert.ok(service.calls() - calls < 20, `${service.calls() - calls} calls meanwhile`);
      assert.deepEqual([exit.code, exit.signal], [0, null], member.logTail());
    }
    assert.ok(member.log().length < MAX_LOG_BYTES, `${member.log().length} bytes of log`);
    assert.ok(
      member
        .log()
        .split("\n")
        .every((line) => line.length < 4096),
      "no line is endless",
    );
    assert.equal(strayed, 0, "no redirection is followed");
  } finally {
    await member.kill();
    service.close();
  }
}

describe("a discovery service that is hostile", { concurrency: 2 }, () => {
  after(() => rmSync(dir, { recursive: true, force: true }));
  for (const [at, one] of cases.entries()) test(one.name, () => attack(one, at));
});
