/** Lists of intervals, merged while they are asked: the verdict is the same all the while. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { fromLatin1 } from "@quorate/proto";
import { keyRange } from "@quorate/store";
import fc from "fast-check";
import {
  type Interval,
  Intervals,
  intervalOf,
  MERGE_STEPS,
  MergingIntervals,
  OPEN,
  reaches,
} from "../src/mvcc/intervals.ts";

const LETTERS = ["a", "b", "c", "d", "e", "f"];
const key = fc.constantFrom(...LETTERS, ...LETTERS.flatMap((one) => [`${one}\0`, `${one}m`]));
const interval: fc.Arbitrary<Interval> = fc.record({
  begin: key,
  end: fc.oneof({ weight: 9, arbitrary: key }, { weight: 1, arbitrary: fc.constant(OPEN) }),
});

/** The obvious way: from end to end. */
function naiveCovers(all: readonly Interval[], { begin, end }: Interval): boolean {
  let at = begin;
  for (;;) {
    const next = all
      .filter((one) => one.begin <= at && (one.end === OPEN || one.end > at))
      .map((one) => one.end);
    if (next.length === 0) return false;
    const farthest = next.reduce((a, b) => (reaches(a, b) ? a : b));
    if (reaches(farthest, end)) return true;
    at = farthest as string;
  }
}

test("the verdict is that of all intervals at every stage of the merge", () => {
  let asked = 0;
  fc.assert(
    fc.property(
      fc.array(fc.array(interval, { maxLength: 6 }), { maxLength: 6 }),
      fc.array(interval, { minLength: 12, maxLength: 12 }),
      fc.integer({ min: 1, max: 4 }),
      (lists, questions, steps) => {
        const merging = new MergingIntervals(
          lists.map((list) => Intervals.of(list)),
          steps,
        );
        for (const question of questions) {
          assert.equal(merging.covers(question), naiveCovers(lists.flat(), question));
          if (merging.lists > 1) asked++;
        }
      },
    ),
    { numRuns: 2000, seed: 14 },
  );
  assert.ok(asked > 1000, `${asked} questions while lists were merged`);
});

const name = (i: number): string => `k${String(i).padStart(6, "0")}`;

/** 20,000 keys, dealt to so many lists. */
function dealt(lists: number): Intervals[] {
  return Array.from({ length: lists }, (_, list) => {
    const own = [];
    for (let i = list; i < 20_000; i += lists) own.push({ begin: name(i), end: `${name(i)}\0` });
    return Intervals.of(own);
  });
}

test("20,000 intervals of 2 and of 1,000 lists are merged by many questions, each a part of it", () => {
  for (const lists of [2, 1000]) {
    const merging = new MergingIntervals(dealt(lists));
    assert.equal(merging.size, 20_000);
    let questions = 0;
    while (merging.lists > 1) {
      questions++;
      assert.ok(merging.covers({ begin: name(777), end: `${name(777)}\0` }));
      assert.ok(!merging.covers({ begin: "x", end: "y" }));
    }
    // Two questions a round; each interval is looked at once for each doubling of the lists.
    const steps = 20_000 * Math.floor(Math.log2(lists));
    assert.ok(questions * 2 >= steps / MERGE_STEPS - 1, `${questions} rounds of ${lists} lists`);
  }
});

test("a question that would take too many looks at the lists ends the merge instead", () => {
  // Each interval begins where one of another list ends: a range is a walk over all of them.
  const lists = Array.from({ length: 4 }, (_, list) => {
    const own = [];
    for (let i = list; i < 20_000; i += 4) own.push({ begin: name(i), end: name(i + 1) });
    return Intervals.of(own);
  });
  const merging = new MergingIntervals(lists);
  assert.ok(merging.covers({ begin: name(0), end: name(20_000) }));
  assert.equal(merging.lists, 1);
  assert.ok(!merging.covers({ begin: name(0), end: OPEN }));
});

test("intervals overlap what one of them overlaps", () => {
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
      Intervals.of(ranges.map(intervalOf)).overlaps(intervalOf(asked)),
      expected,
      JSON.stringify([ranges, asked]),
    );
  }
});
