/** One leads at a time, and the next one when it ends. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { testCluster } from "@quorate/testing";
import { lead } from "./lead.ts";

test("one leads at a time; another one when its time is over, with a larger token", async () => {
  await using cluster = await testCluster();
  const terms: { name: string; token: number }[] = [];
  let leading = 0;
  const ends: PromiseWithResolvers<void>[] = [Promise.withResolvers(), Promise.withResolvers()];
  const candidate = (name: string) => {
    const stop = new AbortController();
    const work = async (signal: AbortSignal, token: number): Promise<void> => {
      assert.equal(++leading, 1);
      terms.push({ name, token });
      ends[terms.length - 1]?.resolve();
      if (!signal.aborted) await once(signal, "abort");
      leading--;
    };
    return {
      stop,
      over: lead(cluster.client({ timeoutMs: 60_000 }), "jobs", name, work, stop.signal),
    };
  };
  const candidates = [candidate("a"), candidate("b")];
  await ends[0]!.promise;
  const first = candidates[terms[0]!.name === "a" ? 0 : 1]!;
  first.stop.abort();
  await first.over;
  await ends[1]!.promise;
  assert.notEqual(terms[0]!.name, terms[1]!.name);
  assert.ok(terms[1]!.token > terms[0]!.token);
  for (const { stop } of candidates) stop.abort();
  await Promise.all(candidates.map(({ over }) => over));
});
