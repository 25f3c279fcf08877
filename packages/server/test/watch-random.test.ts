/**
 * Random histories against a list: writes, deletions, compactions and store exchanges, watched from
 * random revisions by clients that read as they like. What a watch is sent is what the list says,
 * in order, nothing twice and nothing missing, each revision in one response.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { WATCH_LIMITS } from "@quorate/member";
import type { WatchLimits } from "@quorate/member/testing";
import { fromLatin1, type WatchResponse } from "@quorate/proto";
import { inRange, keyRange } from "@quorate/store";
import { eventText, type MemoryCall, revisionOf, TIGHT, WatchBench } from "./support/watching.ts";

const KEYS = ["a", "aa", "ab", "b", "b/1", "b/2", "c", "\xff"];

class Random {
  #state: number;
  constructor(seed: number) {
    this.#state = seed;
  }
  below(n: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * n);
  }
  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)];
  }
}

interface ModelEvent {
  readonly key: string;
  readonly deleted: boolean;
  readonly revision: number;
  readonly text: string;
  readonly prev: string | undefined;
}

/** A watch as its client sees it. */
interface Watch {
  readonly from: string;
  readonly to: string;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
  readonly fragment: boolean;
  start: number;
  readonly seen: string[];
  /** Everything up to here was received. */
  through: number;
  inFragment: boolean;
  created: boolean;
  cancelled: boolean;
}

class Client {
  readonly call: MemoryCall;
  readonly close: () => void;
  readonly watches = new Map<number, Watch>();
  nextId = 1;
  constructor(bench: WatchBench, budgetBytes: number, isSharing: boolean) {
    const { call, stream } = bench.call({ budgetBytes, isSharing });
    this.call = call;
    this.close = () => stream.close();
  }
}

async function history(
  seed: number,
  limits: WatchLimits,
  steps: number,
): Promise<{ compacted: number; fragments: number; events: number; large: number }> {
  const random = new Random(seed);
  const bench = new WatchBench(limits, { maxRequestBytes: 300 - 512 * 1024 });
  bench.stepKeys = seed % 2 === 0 ? 1 : undefined;
  await bench.open();
  const model: ModelEvent[] = [];
  const values = new Map<string, string>();
  const clients: Client[] = [];
  const count = { compacted: 0, fragments: 0, events: 0, large: 0 };

  const record = (revision: number, changes: Record<string, string | undefined>): void => {
    for (const [key, value] of Object.entries(changes)) {
      const prev = values.get(key);
      if (value === undefined && prev === undefined) continue;
      const text =
        value === undefined ? `delete ${key}@${revision}` : `put ${key}=${value}@${revision}`;
      model.push({ key, deleted: value === undefined, revision, text, prev });
      if (value === undefined) values.delete(key);
      else values.set(key, value);
    }
  };

  const expected = (watch: Watch): ModelEvent[] => {
    const range = keyRange(fromLatin1(watch.from), fromLatin1(watch.to));
    return model.filter(
      (event) =>
        event.revision >= watch.start &&
        inRange(range, event.key) &&
        !(event.deleted ? watch.noDelete : watch.noPut),
    );
  };

  const take = (client: Client, responses: readonly WatchResponse[]): void => {
    for (const response of responses) {
      const where = `seed ${seed}, revision ${bench.store.mvcc.currentRevision}`;
      if (response.watchId === -1) {
        for (const watch of client.watches.values()) {
          if (!watch.created || watch.cancelled) continue;
          const due = expected(watch).filter(
            ({ revision }) => revision <= response.header!.revision,
          );
          assert.equal(watch.seen.length, due.length, `${where}: progress is true for every watch`);
          watch.through = Math.max(watch.through, response.header!.revision);
        }
        continue;
      }
      const watch = client.watches.get(Number(response.watchId))!;
      if (response.created) {
        watch.created = true;
        if (watch.start === 0) watch.start = response.header!.revision + 1;
        continue;
      }
      // As in etcd, the client may still cancel what a compaction has ended, and is answered.
      if (watch.cancelled && response.canceled && response.compactRevision === 0) continue;
      assert.ok(
        watch.created && !watch.cancelled,
        `${where}: nothing before created or after canceled`,
      );
      if (response.canceled) {
        watch.cancelled = true;
        if (response.compactRevision > 0) {
          count.compacted++;
          assert.equal(response.header!.revision, 0);
          const next = expected(watch)[watch.seen.length];
          assert.ok(
            next === undefined || watch.through < response.compactRevision,
            `${where}: cancelled only if behind the compaction`,
          );
        }
        continue;
      }
      count.events += response.events.length;
      if (response.fragment) count.fragments++;
      assert.ok(watch.fragment || !response.fragment);
      const first = response.events[0] === undefined ? undefined : revisionOf(response.events[0]);
      if (!watch.inFragment && first !== undefined) {
        assert.ok(
          first > watch.through,
          `${where}: revision ${first} after all up to ${watch.through} were received`,
        );
      }
      const due = expected(watch);
      for (const bytes of response.events) {
        const event = due[watch.seen.length];
        const text = eventText(bytes);
        const bare = text.split("<", 1)[0];
        assert.equal(
          bare,
          event?.text,
          `${where}: watch of ${watch.from} to ${watch.to} from ${watch.start}`,
        );
        // What was before may be gone by compaction at the event's own revision, and only then.
        const compact = bench.store.mvcc.compactRevision;
        if (!watch.prevKv || event.prev === undefined) assert.equal(text, bare);
        else if (event.revision > compact) assert.equal(text, `${bare}<${event.prev}`, where);
        watch.seen.push(text);
      }
      watch.inFragment = response.fragment;
      if (!response.fragment) {
        const last = revisionOf(response.events[response.events.length - 1]);
        assert.ok(response.header!.revision >= last, where);
        const next = due[watch.seen.length];
        assert.ok(
          next === undefined || next.revision > response.header!.revision,
          `${where}: nothing up to the header's revision is missing`,
        );
        watch.through = response.header!.revision;
      }
    }
  };

  for (let step = 0; step < steps; step++) {
    const what = random.below(100);
    const { currentRevision, compactRevision } = bench.store.mvcc;
    if (what < 45) {
      const changes: Record<string, string | undefined> = {};
      for (let i = 1 + random.below(random.below(8) === 0 ? 6 : 2); i > 0; i--) {
        changes[random.pick(KEYS)] =
          random.below(4) === 0 ? undefined : `${step}${"v".repeat(random.below(40))}`;
      }
      const revision = bench.write(changes);
      if (revision > currentRevision) record(revision, changes);
    } else if (what < 60) {
      if (clients.length < 6) {
        const isSharing = random.below(2) === 0;
        clients.push(new Client(bench, 100 + random.below(400), isSharing));
      }
      const client = random.pick(clients);
      const id = client.nextId++;
      const from = random.pick(KEYS);
      const later = KEYS.filter((key) => key > from);
      const watch: Watch = {
        from,
        to:
          random.below(2) === 0
            ? ""
            : random.below(3) === 0 || later.length === 0
              ? "\0"
              : random.pick(later),
        noPut: random.below(8) === 0,
        noDelete: random.below(8) === 0,
        prevKv: random.below(2) === 0,
        fragment: random.below(3) === 0,
        start:
          random.below(3) === 0
            ? 0
            : Math.max(1, compactRevision - 2, currentRevision + 3 - random.below(40)),
        seen: [],
        through: 0,
        inFragment: false,
        created: false,
        cancelled: false,
      };
      client.watches.set(id, watch);
      client.call.create({
        key: fromLatin1(watch.from),
        rangeEnd: fromLatin1(watch.to),
        startRevision: watch.start,
        watchId: id,
        filters: [...(watch.noPut ? [0] : []), ...(watch.noDelete ? [1] : [])],
        prevKv: watch.prevKv,
        fragment: watch.fragment,
      });
    } else if (what < 63 && clients.length > 0) {
      const client = random.pick(clients);
      const ids = [...client.watches.keys()];
      if (ids.length > 0) client.call.cancel(random.pick(ids));
    } else if (what < 68 && clients.length > 0) random.pick(clients).call.progress();
    else if (what < 80 && clients.length > 0) {
      const client = random.pick(clients);
      take(client, client.call.read(1 + random.below(6)));
    } else if (what < 81 && currentRevision > compactRevision + 5) {
      bench.store.mvcc.compact(currentRevision - random.below(5));
    } else if (what < 83 && values.size > 4) {
      // With steps of one key, these are too many changes to be sent at once.
      const gone = Object.fromEntries([...values.keys()].sort().map((key) => [key, undefined]));
      if (bench.stepKeys !== undefined && bench.store.mvcc.onChange !== undefined) count.large++;
      record(bench.write(gone), gone);
    } else if (what < 87) bench.store.mvcc.compactStep(3);
    else if (what < 88 && clients.length > 3)
      clients.splice(random.below(clients.length), 1)[0].close();
    else if (what < 89) await bench.exchange();
    else await bench.run(1 + random.below(3));
  }
  // Everybody reads to the end.
  for (let idle = 0; idle < 20; idle++) {
    await bench.run(5);
    for (const client of clients) {
      const responses = client.call.read();
      if (responses.length > 0) idle = 0;
      take(client, responses);
    }
  }
  for (const client of clients) {
    for (const watch of client.watches.values()) {
      if (!watch.cancelled)
        assert.equal(
          watch.seen.length,
          expected(watch).length,
          `seed ${seed}: all is received in the end`,
        );
    }
  }
  assert.equal(bench.hub.feed.slowWatcherCount, 0);
  assert.equal(bench.hub.pendingEvents, 0);
  for (const client of clients) client.close();
  assert.deepEqual(
    [bench.hub.feed.watcherCount, bench.hub.streamCount, bench.hub.backlogBytes],
    [0, 0, 0],
  );
  assert.equal(bench.store.mvcc.onChange, undefined);
  return count;
}

for (const [name, limits] of [
  ["tight bounds", TIGHT],
  ["the bounds of a member", WATCH_LIMITS],
] as const) {
  test(`watches of random histories, with ${name}`, async (t) => {
    const total = { compacted: 0, fragments: 0, events: 0, large: 0 };
    const first = Number(process.env["QUORATE_SEED"] ?? 1);
    for (let seed = first; seed < first + 60; seed++) {
      const count = await history(seed, limits, 400);
      total.compacted += count.compacted;
      total.fragments += count.fragments;
      total.events += count.events;
      total.large += count.large;
    }
    t.diagnostic(`seeds from ${first} (QUORATE_SEED): ${JSON.stringify(total)}`);
    assert.ok(total.compacted > 0 && total.fragments > 0 && total.events > 0 && total.large > 50);
  });
}
