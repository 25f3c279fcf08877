/**
 * GET /watch/KEY: frames, resuming, bounds, and what ends a stream.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MemoryExchange } from "@quorate/host/testing";
import {
  EventFrames,
  EventLines,
  Heartbeats,
  KEEP_ALIVE_MS,
  MAX_BEATS_IN_TURN,
  MAX_LINES_IN_TURN,
  MAX_SHARED_LINES,
} from "@quorate/http-kv/testing";
import {
  AuthService,
  CompactionRequest,
  Event,
  fromUtf8,
  KeyValue,
  WatchResponse,
} from "@quorate/proto";
import { KvClient, startedKv } from "./support/http-kv.ts";
import { callAs, enableAuth, login } from "./support/users.ts";
import { call, World } from "./support/world.ts";

interface Message {
  readonly id: string | undefined;
  readonly type: string;
  readonly data: string;
}

/** Messages as an EventSource sees them: those that are complete. @param cutAt where it is cut */
function messagesOf(text: string): Message[] {
  const messages: Message[] = [];
  for (const block of text.split("\n\n").slice(0, -1)) {
    let id: string | undefined;
    let type = "message";
    const data: string[] = [];
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) id = line.slice(4);
      else if (line.startsWith("event: ")) type = line.slice(7);
      else if (line.startsWith("data: ")) data.push(line.slice(6));
    }
    messages.push({ id, type, data: data.join("\n") });
  }
  return messages;
}

/** The id that a client notes last, and the events that its program gets. */
function seenIn(text: string): { readonly last: string | undefined; readonly events: string[] } {
  const messages = messagesOf(text);
  const events = messages
    .filter(({ type, data }) => type === "message" && data !== "")
    .flatMap(({ data }) => JSON.parse(data) as Record<string, unknown>[])
    .map(({ type, key, value, mod_revision }) => `${type} ${key}=${value}@${mod_revision}`);
  return { last: messages.findLast(({ id }) => id !== undefined)?.id, events };
}

test("events of one revision are one message; it has no id before it is complete", async () => {
  const { world, kv } = await startedKv();
  const stream = kv.start("GET", "/watch/w/?prefix");
  await world.run(5);
  assert.equal(stream.status, 200);
  assert.equal(stream.headers["content-type"], "text/event-stream");
  const begun = seenIn(stream.text).last;
  const ops = ["a", "b", "c"].map((key) => ({ put: `w/${key}`, value: key }));
  await kv.ask("POST", "/txn", { body: JSON.stringify(ops) });
  await kv.ask("PUT", "/kv/other", { body: "not seen" });
  await kv.ask("DELETE", "/kv/w/?prefix");
  await world.run(5);
  const { events, last } = seenIn(stream.text);
  const first = Number(begun) + 1;
  assert.deepEqual(events, [
    ...["a", "b", "c"].map((key) => `put w/${key}=${key}@${first}`),
    ...["a", "b", "c"].map((key) => `delete w/${key}=undefined@${first + 2}`),
  ]);
  assert.equal(last, String(first + 2));
  // Cut anywhere, what a client has, and what it gets when it resumes, is every event once.
  for (let cut = 0; cut <= stream.text.length; cut += 7) {
    const before = seenIn(stream.text.slice(0, cut));
    const headers: Record<string, string> =
      before.last === undefined ? {} : { "last-event-id": before.last };
    const again = kv.start("GET", `/watch/w/?prefix&from=${first}`, { headers });
    await world.run(5);
    assert.deepEqual([...before.events, ...seenIn(again.text).events], events, `cut at ${cut}`);
    again.listener.aborted?.();
  }
  await world.stopAll();
});

test("options: the pair before, one type of event, one key, and progress", async () => {
  const { world, kv } = await startedKv();
  await kv.ask("PUT", "/kv/k", { body: "1" });
  const previous = kv.start("GET", "/watch/k?previous");
  const deletes = kv.start("GET", "/watch/k?only=delete&progress");
  const puts = kv.start("GET", "/watch/?prefix&only=put");
  await world.run(5);
  await kv.ask("PUT", "/kv/k", { body: "2" });
  await kv.ask("DELETE", "/kv/k");
  await world.run(5);
  const [put] = JSON.parse(messagesOf(previous.text).find(({ data }) => data !== "")!.data);
  assert.equal(put.previous.value, "1");
  assert.match(deletes.text, /"type":"delete"/);
  assert.doesNotMatch(deletes.text, /"type":"put"/);
  assert.deepEqual(seenIn(puts.text).events.length, 1);
  await world.run(KEEP_ALIVE_MS + 2000);
  const progress = messagesOf(deletes.text).filter(({ type }) => type === "progress");
  assert.equal(progress.length, 1);
  assert.equal(JSON.parse(progress[0].data).revision, Number(progress[0].id));
  await world.stopAll();
});

test("a fragment leaves its revision open, and the next response ends it", () => {
  const lines = new EventLines(() => {});
  const piece = (key: string, modRevision: number) =>
    WatchResponse.encode({
      events: [Event.encode({ kv: KeyValue.encode({ key: fromUtf8(key), modRevision }) })],
    });
  const frames = new EventFrames();
  const text = (...pieces: Uint8Array[]) =>
    pieces
      .map((one) =>
        lines
          .of(one)
          .map((line) => frames.event(line))
          .join(""),
      )
      .join("");
  const first = text(piece("a", 7), piece("b", 8), piece("c", 8));
  assert.match(first, /\nid: 7\n\n/);
  assert.doesNotMatch(first, /id: 8/);
  const second = text(piece("d", 8)) + frames.end();
  assert.match(second, /\]\nid: 8\n\n$/);
  assert.deepEqual(
    messagesOf(first + second).map(({ id, data }) => [id, JSON.parse(data).length]),
    [
      ["7", 1],
      ["8", 3],
    ],
  );
  for (let i = 0; i < 2 * MAX_SHARED_LINES; i++) lines.of(piece(`${i}`, 9));
  assert.ok(lines.size <= MAX_SHARED_LINES);
});

test("an idle stream gets comments, and notes the revision without its program's notice", async () => {
  const { world, kv } = await startedKv();
  const stream = kv.start("GET", "/watch/quiet");
  await world.run(5);
  await kv.ask("PUT", "/kv/loud", {});
  const { headers } = await kv.ask("PUT", "/kv/loud", {});
  await world.run(KEEP_ALIVE_MS + 2000);
  assert.match(stream.text, /: keep-alive\n/);
  assert.deepEqual(seenIn(stream.text), { last: headers["quorate-revision"], events: [] });
  const future = kv.start("GET", "/watch/quiet?from=1000");
  await world.run(KEEP_ALIVE_MS + 2000);
  assert.match(future.text, /: keep-alive\n\n$/);
  assert.equal(seenIn(future.text).last, "999");
  await world.stopAll();
});

test("a compacted revision is an event that says where to begin again", async () => {
  const { world, member, kv } = await startedKv();
  for (let i = 0; i < 5; i++) await kv.ask("PUT", "/kv/c", { body: String(i) });
  const compaction = CompactionRequest.encode({ revision: 4 });
  await world.settled(call(member, "/etcdserverpb.KV/Compact", compaction));
  const stream = await kv.ask("GET", "/watch/c?from=2");
  assert.equal(stream.state, "ended");
  const message = messagesOf(stream.text).at(-1)!;
  assert.equal(message.type, "compacted");
  assert.deepEqual(JSON.parse(message.data), { compact_revision: 4, from: 5 });
  const again = kv.start("GET", "/watch/c?from=2", { headers: { "last-event-id": message.id! } });
  await world.run(5);
  assert.deepEqual(seenIn(again.text).events, ["put c=3@5", "put c=4@6"]);
  await world.stopAll();
});

test("a slow reader costs a bounded number of bytes, then gets every event", async () => {
  const { world, kv } = await startedKv();
  const stream = kv.exchange("GET", "/watch/s?from=1");
  stream.serve(kv.handler(stream));
  await world.run(5);
  stream.bufferedBytes = 1 << 20;
  stream.sendBudgetBytes = 1;
  const WRITES = 200;
  const body = "x".repeat(50_000);
  for (let i = 0; i < WRITES; i++) await kv.ask("PUT", "/kv/s", { body: `${i} ${body}` });
  await world.run(20);
  const waiting = stream.pieces.reduce((sum, { length }) => sum + length, 0);
  assert.ok(waiting < 1_000_000, `${waiting} of 10,000,000 bytes`);
  stream.bufferedBytes = 0;
  stream.sendBudgetBytes = Number.POSITIVE_INFINITY;
  stream.listener.drained?.();
  await world.until(() => seenIn(stream.text).events.length === WRITES);
  await world.stopAll();
});

test("much history for many streams is encoded in turns, complete and in order", async () => {
  const { world, member, kv } = await startedKv();
  const { mvcc } = member.store;
  const REVISIONS = 2 * MAX_LINES_IN_TURN;
  for (let i = 0; i < REVISIONS; i++) {
    const txn = mvcc.begin();
    txn.put(fromUtf8("h"), "h", fromUtf8(`${i}`), 0n);
    txn.commit();
  }
  const wanted = Array.from({ length: REVISIONS }, (_, i) => `put h=${i}@${i + 2}`);
  const streams = [1, 2, 3].map(() => kv.start("GET", "/watch/h?from=1"));
  streams[2].sendBudgetBytes = 0;
  await world.until(() =>
    streams.slice(0, 2).every(({ text }) => text.includes(`id: ${REVISIONS + 1}\n`)),
  );
  for (const { text } of streams.slice(0, 2)) assert.deepEqual(seenIn(text).events, wanted);
  // One that takes a piece at a time gets the same.
  while (seenIn(streams[2].text).events.length < REVISIONS) {
    streams[2].listener.drained?.();
    await world.run(2);
  }
  assert.deepEqual(seenIn(streams[2].text).events, wanted);
  const lines = new EventLines(() => {});
  const piece = (modRevision: number) =>
    WatchResponse.encode({ events: [Event.encode({ kv: KeyValue.encode({ modRevision }) })] });
  const kept = piece(1);
  lines.of(kept);
  for (let i = 1; i < MAX_LINES_IN_TURN; i++) lines.of(piece(i + 1));
  assert.equal(lines.mayEncode(piece(1)), false);
  assert.equal(lines.mayEncode(kept), true, "it is encoded already");
  await world.stopAll();
});

test("a crowd of idle streams: each gets its comment, in small parts, and is forgotten when it goes", async () => {
  const { world, member, kv } = await startedKv();
  const STREAMS = 1000;
  const streams = Array.from({ length: STREAMS }, (_, i) =>
    kv.start("GET", "/watch/crowd", { peerAddress: `10.0.${i >> 8}.${i & 255}:1` }),
  );
  await world.run(5);
  await kv.ask("PUT", "/kv/crowd", { body: "1" });
  await world.until(() => streams.every(({ text }) => seenIn(text).events.length === 1));
  await world.run(KEEP_ALIVE_MS + 2000);
  assert.ok(streams.every(({ text }) => text.includes(": keep-alive")));
  const watchers = () => member.watches.feed.watcherCount;
  assert.equal(watchers(), STREAMS);
  for (const stream of streams) stream.listener.aborted?.();
  await world.run(5);
  assert.equal(watchers(), 0);
  await world.stopAll();
});

test("heartbeats: a bounded number in one turn, one in a period for each", async () => {
  const world = new World(0);
  const beats = new Heartbeats(world.clock, 10_000);
  const counts = new Array<number>(300).fill(0);
  const tasks = counts.map((_, i) => () => void counts[i]++);
  for (const task of tasks) beats.add(task);
  world.clock.advance(10_999);
  const total = () => counts.reduce((sum, count) => sum + count, 0);
  assert.ok(total() <= 300);
  assert.ok(MAX_BEATS_IN_TURN < 300);
  await world.run(20);
  assert.deepEqual(new Set(counts), new Set([1]));
  await world.run(10_000);
  assert.deepEqual(new Set(counts), new Set([2]));
  for (const task of tasks) beats.remove(task);
  assert.equal(beats.size, 0);
});

test("permission: refused at once with a problem, revoked in the middle with a last message", async () => {
  const { world, member, kv } = await startedKv();
  const root = await enableAuth(world, member, "ann");
  const token = await world.settled(login(member, "ann"));
  const headers = { authorization: `Bearer ${token}` };
  const denied = await kv.ask("GET", "/watch/bob/?prefix", { headers });
  assert.equal(denied.status, 403, denied.text);
  assert.equal((await kv.ask("GET", "/watch/ann/?prefix")).status, 401);
  const stream = kv.start("GET", "/watch/ann/?prefix", { headers });
  await world.run(5);
  assert.equal(stream.status, 200);
  const { RoleRevokePermission } = AuthService.methods;
  const revoked = { role: "ann", key: fromUtf8("ann/"), rangeEnd: fromUtf8("ann0") };
  await world.settled(callAs(member, root, RoleRevokePermission, revoked));
  await world.settled(stream.done);
  assert.equal(stream.state, "ended");
  const message = messagesOf(stream.text).at(-1)!;
  assert.equal(message.type, "end");
  assert.equal(JSON.parse(message.data).type, "urn:quorate:problem:permission-denied");
  await world.stopAll();
});

test("a member without a leader ends its streams; one that stops does as well", async () => {
  const world = new World(3);
  await world.startAll();
  const lonely = world.nodes.find((node) => node !== world.leader())!;
  const kv = new KvClient(world, lonely.member!);
  const stream = kv.start("GET", "/watch/x");
  await world.run(5);
  world.cutOff.add(lonely.member!.id);
  await world.settled(stream.done);
  const message = messagesOf(stream.text).at(-1)!;
  assert.equal(message.type, "end");
  assert.equal(JSON.parse(message.data).type, "urn:quorate:problem:unavailable");
  const refused = await kv.ask("GET", "/watch/x");
  assert.equal(refused.status, 503);
  await world.stopAll();
});

test("a client that reconnects to other members while leaders are killed sees every event once", async () => {
  const world = new World(3);
  await world.startAll();
  const clients = new Map(world.nodes.map((node) => [node, new KvClient(world, node.member!)]));
  const alive = () => world.nodes.filter(({ member }) => member !== undefined);
  const seen: string[] = [];
  let last: string | undefined;
  let stream: MemoryExchange | undefined;
  let turn = 0;
  /** Takes what the client has; it notes the last id as an EventSource does. */
  const take = () => {
    const found = seenIn(stream?.text ?? "");
    seen.push(...found.events);
    last = found.last ?? last;
    stream?.listener.aborted?.();
  };
  const connect = () => {
    const nodes = alive();
    const kv = clients.get(nodes[turn++ % nodes.length])!;
    const headers: Record<string, string> = last === undefined ? {} : { "last-event-id": last };
    stream = kv.start("GET", "/watch/e/?prefix&from=1", { headers });
  };
  const written: string[] = [];
  let i = 0;
  const write = async () => {
    const kv = clients.get(alive()[i % alive().length])!;
    const ops = [1, 2].map((n) => ({ put: `e/${n}`, value: `${i}` }));
    const { status, text } = await kv.ask("POST", "/txn", { body: JSON.stringify(ops) });
    i++;
    if (status === 200) {
      const { revision } = JSON.parse(text);
      written.push(...[1, 2].map((n) => `put e/${n}=${i - 1}@${revision}`));
    }
  };
  connect();
  for (let round = 0; round < 4; round++) {
    for (let n = 0; n < 5; n++) await write();
    const killed = world.leader()!;
    killed.crashAt = round % 2 === 0 ? "after-wal-sync" : "before-send";
    while (killed.ended === undefined) await write();
    killed.disk.crash(world.random.fork(`${round}`));
    await write();
    take();
    connect();
    for (let n = 0; n < 5; n++) await write();
    await world.run(20);
    take();
    clients.set(killed, new KvClient(world, await world.start(killed)));
    connect();
    await world.until(() => world.leader() !== undefined);
  }
  await world.until(() => {
    const found = seenIn(stream!.text).events;
    return found.at(-1) === written.at(-1) || seen.at(-1) === written.at(-1);
  });
  take();
  const unsure = seen.filter((event) => !written.includes(event));
  assert.equal(new Set(seen).size, seen.length, "no event comes twice");
  assert.deepEqual(
    seen.filter((event) => !unsure.includes(event)),
    written,
    "every acknowledged event comes, in order",
  );
  assert.ok(written.length > 60);
  await world.stopAll();
});
