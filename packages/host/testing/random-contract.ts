/** The contract suite of Random. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Random } from "../src/random.ts";

/** Registers the suite. `make` returns a stream for a seed: the same seed, the same stream. */
export function randomContract(name: string, make: (seed: bigint) => Random): void {
  describe(`random: ${name}`, () => {
    const draw = (random: Random) => Array.from({ length: 8 }, () => random.uint32());

    it("repeats itself from a seed and differs between seeds", () => {
      assert.deepEqual(draw(make(7n)), draw(make(7n)));
      assert.notDeepEqual(draw(make(7n)), draw(make(8n)));
    });

    it("keeps each kind of number in its bounds and uses all of them", () => {
      const random = make(1n);
      const seen = new Set<number>();
      for (let i = 0; i < 2000; i++) {
        const word = random.uint32();
        assert.ok(Number.isInteger(word) && word >= 0 && word < 2 ** 32);
        const long = random.uint64();
        assert.ok(long >= 0n && long < 1n << 64n);
        const unit = random.unit();
        assert.ok(unit >= 0 && unit < 1);
        const small = random.below(10);
        assert.ok(Number.isInteger(small) && small >= 0 && small < 10);
        seen.add(small);
        assert.equal(random.below(1), 0);
        assert.ok(random.below(2 ** 32) < 2 ** 32);
      }
      assert.equal(seen.size, 10);
    });

    it("spreads its bits evenly", () => {
      const random = make(2n);
      const counts = new Array<number>(64).fill(0);
      const draws = 4000;
      for (let i = 0; i < draws; i++) {
        const long = random.uint64();
        for (const [bit, count] of counts.entries())
          counts[bit] = count + Number((long >> BigInt(bit)) & 1n);
      }
      // Seven standard deviations of a fair coin.
      const slack = 7 * Math.sqrt(draws / 4);
      for (const count of counts)
        assert.ok(Math.abs(count - draws / 2) < slack, `a bit was set ${count} times of ${draws}`);
    });

    it("refuses a bound that is not a whole number from 1 to 2^32", () => {
      for (const bound of [0, -1, 1.5, 2 ** 32 + 1, Number.NaN])
        assert.throws(() => make(1n).below(bound), RangeError);
    });

    it("forks by name, whatever was drawn before", () => {
      const drawn = make(3n);
      drawn.uint64();
      assert.deepEqual(draw(drawn.fork("a")), draw(make(3n).fork("a")));
      assert.notDeepEqual(draw(make(3n).fork("a")), draw(make(3n).fork("b")));
      assert.notDeepEqual(draw(make(3n).fork("a")), draw(make(3n)));
      assert.notDeepEqual(draw(make(3n).fork("a").fork("b")), draw(make(3n).fork("b")));
    });
  });
}
