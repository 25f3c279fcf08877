/** The small parts of watch, each against a model that is plainly right. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { fromLatin1, KeyValue } from "@quorate/proto";
import { type Change, keyRange } from "@quorate/store";
import { ClientBudget } from "../src/watch/client-budget.ts";
import { WatchEvent } from "../src/watch/event.ts";
import { KeyIntervals } from "../src/watch/key-intervals.ts";
import { RecentEvents } from "../src/watch/recent-events.ts";

test("the budget of clients is one number for each and one for all, to the byte", () => {
  const random = new SeededRandom(34n);
  const limits = { maxTotalBytes: 50, maxClientBytes: 20 };
  const budget = new ClientBudget(limits);
  const used = new Map<string, number>();
  const total = () => [...used.values()].reduce((sum, one) => sum + one, 0);
  let refusals = 0;
  for (let i = 0; i < 2000; i++) {
    const client = "abcde"[random.below(5)]!;
    const own = used.get(client) ?? 0;
    if (random.below(2) === 0) {
      const sizeBytes = random.below(12);
      const fits =
        own + sizeBytes <= limits.maxClientBytes && total() + sizeBytes <= limits.maxTotalBytes;
      assert.equal(budget.take(client, sizeBytes), fits);
      if (fits) used.set(client, own + sizeBytes);
      else refusals++;
    } else {
      const sizeBytes = random.below(own + 1);
      budget.give(client, sizeBytes);
      used.set(client, own - sizeBytes);
    }
    assert.deepEqual([budget.usedBytes, budget.usedBy(client)], [total(), used.get(client) ?? 0]);
  }
  assert.equal(budget.refusals, refusals);
  assert.ok(refusals > 100 && total() > 0);
});

test("ranges put in order overlap what one of them overlaps", () => {
  const random = new SeededRandom(34n);
  const letter = () => String.fromCharCode(97 + random.below(12));
  const range = () => {
    const [from, to] = [letter(), letter()];
    if (random.below(4) === 0) return keyRange(fromLatin1(from), fromLatin1(""));
    if (random.below(8) === 0) return keyRange(fromLatin1(from), fromLatin1("\0"));
    const ends = from < to ? to : `${from}~`;
    return keyRange(fromLatin1(from), fromLatin1(ends));
  };
  const bounds = (one: ReturnType<typeof range>) =>
    one.single ? [one.key, `${one.key}\0`] : [one.key, one.to ?? "\xff"];
  for (let round = 0; round < 2000; round++) {
    const ranges = Array.from({ length: random.below(6) }, range);
    const asked = range();
    const [from, to] = bounds(asked) as [string, string];
    const expected = ranges.some((one) => {
      const [begin, end] = bounds(one) as [string, string];
      return begin < to && from < end;
    });
    assert.equal(
      new KeyIntervals(ranges).overlaps(asked),
      expected,
      JSON.stringify([ranges, asked]),
    );
  }
});

test("the last events are whole revisions within their bounds, or one larger revision", () => {
  const random = new SeededRandom(34n);
  const event = (main: number, sub: number) => {
    const value = new Uint8Array(random.below(300));
    const record = KeyValue.encode(KeyValue.create({ key: fromLatin1("k"), value }));
    return new WatchEvent({ main, sub, key: "k", record, deleted: false } as Change);
  };
  for (const limits of [
    { maxRecentEvents: 5, maxRecentBytes: 1 << 20 },
    { maxRecentEvents: 1000, maxRecentBytes: 1500 },
    { maxRecentEvents: 1, maxRecentBytes: 1 },
  ]) {
    const recent = new RecentEvents(2, limits);
    let model: WatchEvent[] = [];
    let first = 2;
    const bytes = () => model.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
    for (let main = 2; main < 200; main++) {
      for (let sub = 0; sub < 1 + random.below(4); sub++) {
        const next = event(main, sub);
        recent.push(next);
        model.push(next);
        while (
          (model.length > limits.maxRecentEvents || bytes() > limits.maxRecentBytes) &&
          model[0]!.main < main
        ) {
          const [{ main: gone }] = model as [WatchEvent];
          first = gone + 1;
          model = model.filter((one) => one.main !== gone);
        }
        assert.deepEqual(
          [recent.firstRevision, recent.size, recent.heldBytes],
          [first, model.length, bytes()],
        );
        const from = first + random.below(3);
        const most = 1 + random.below(4);
        const seen: WatchEvent[] = [];
        recent.scan(from, (one) => seen.push(one) < most);
        assert.deepEqual(seen, model.filter((one) => one.main >= from).slice(0, most));
      }
    }
  }
});
