/**
 * The soak of leases, for a moment: it sees renewals, ends and lags of real members. The long run
 * is `./dev soak leases`.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { soakLeases } from "../../bench/leases.ts";

test("a few hundred leases are kept alive, and end when they are left alone", async () => {
  const said: string[] = [];
  const result = await soakLeases({
    leases: 300,
    minutes: 0.08,
    ttlS: 6,
    size: 3,
    say: (text) => said.push(text),
  });
  assert.deepEqual([result.lost, result.early], [0, 0]);
  // Each has its turn every two seconds, for almost five.
  assert.ok(result.renewals >= 300 * 2, `${result.renewals} renewals`);
  const { lagP50Ms, lagMostMs } = result;
  assert.ok(
    lagMostMs > 0 && lagP50Ms <= lagMostMs && lagMostMs < 60_000,
    `lags: p50 ${lagP50Ms} ms, most ${lagMostMs} ms`,
  );
  assert.match(said[0], /^300 leases of 6 s, each with a key, on 3 members$/);
});
