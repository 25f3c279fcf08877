/** The soak of leases, for a moment: it sees renewals, ends and lags of real members. The long run is `npm run soak:leases`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { soakLeases } from "../../bench/leases.ts";

test("a few hundred leases are kept alive, and end when they are left alone", async () => {
  const said: string[] = [];
  const result = await soakLeases({ leases: 300, minutes: 0.05, ttlS: 3, size: 3, say: (text) => said.push(text) });
  assert.deepEqual([result.lost, result.early], [0, 0]);
  assert.ok(result.renewals >= 300 * 3, `${result.renewals} renewals`);
  assert.ok(result.lagP50Ms > 0 && result.lagMostMs < 30_000, `lags: p50 ${result.lagP50Ms} ms, most ${result.lagMostMs} ms`);
  assert.match(said[0]!, /^300 leases of 3 s, each with a key, on 3 members$/);
});
