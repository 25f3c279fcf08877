/**
 * The same random history through our cluster and through the original: the same answers, and in
 * the end the same hash.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type CompactionRequest,
  fromLatin1,
  KVService,
  MaintenanceService,
  toLatin1,
} from "@quorate/proto";
import { CallError, TestClient } from "../support/client.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { etcd, skipWithoutEtcd } from "../support/executables.ts";
import { nextStep, type Step } from "../support/history.ts";
import { SeededRandom, seedOf } from "../support/random.ts";

const steps = Number(process.env["QUORATE_STEPS"] ?? 2500);
const stepsBetweenHashes = 250;

test("a random history of puts, deletions, transactions, ranges and compactions", {
  skip: skipWithoutEtcd,
}, async (t) => {
  const seed = seedOf(20_240_229);
  t.diagnostic(`seed ${seed} (QUORATE_SEED), ${steps} steps (QUORATE_STEPS)`);
  const random = new SeededRandom(seed);
  await withCluster({ size: 3 }, (ours) =>
    withCluster({ executable: etcd!, size: 1 }, async (theirs) => {
      const clients = clientsOf(ours);
      const [original] = clientsOf(theirs) as [TestClient];
      try {
        const counts = new Map<string, number>();
        let current = 1;
        let compacted = 0;
        for (let index = 0; index < steps; index++) {
          const step = nextStep(random, { current, compacted });
          const client = random.pick(clients);
          // A transaction without operations counts as serializable: bring the member up to date
          // first.
          if (step.method === KVService.methods.Txn)
            await client.call(KVService.methods.Range, { key: fromLatin1("a") });
          const expected = await answer(original, step);
          assert.equal(
            await answer(client, step),
            expected,
            `step ${index} of seed ${seed}: ${step.method.name} ${show(step.request)}`,
          );
          if (step.method === KVService.methods.Range) {
            // The member has just answered a linearizable read and no client writes: its own state
            // must say the same.
            const local: Step = {
              method: step.method,
              request: { ...step.request, serializable: true },
            };
            assert.equal(
              await answer(client, local),
              expected,
              `step ${index} of seed ${seed}, serializable: ${show(step.request)}`,
            );
          }
          const outcome = `${step.method.name}${expected.startsWith("error") ? " refused" : ""}`;
          counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
          current = revisionIn(expected) ?? current;
          if (step.method === KVService.methods.Compact && !expected.startsWith("error")) {
            compacted = (step.request as CompactionRequest).revision;
          }
          if (index % stepsBetweenHashes === stepsBetweenHashes - 1 || index === steps - 1) {
            const expectedHash = await hashOf(original);
            for (const [member, one] of clients.entries()) {
              assert.equal(
                await hashOf(one),
                expectedHash,
                `HashKV of member ${member} after step ${index} of seed ${seed}`,
              );
            }
          }
        }
        t.diagnostic([...counts].map(([name, count]) => `${name} ${count}`).join(", "));
        for (const name of [
          "Put",
          "Range",
          "DeleteRange",
          "Txn",
          "Compact",
          "Txn refused",
          "Range refused",
          "Compact refused",
        ]) {
          assert.ok((counts.get(name) ?? 0) > 0, `the history has no "${name}"`);
        }
      } finally {
        for (const client of [...clients, original]) client.close();
      }
    }),
  );
});

function clientsOf(cluster: TestCluster): TestClient[] {
  return cluster.members.map((member) => new TestClient(member.clientAddress, cluster.identity));
}

/** The answer as text; ids and the term, in which clusters differ, are left out. */
async function answer(client: TestClient, { method, request }: Step): Promise<string> {
  try {
    return show(await client.call(method, request, 10_000));
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    return `error ${error.code}: ${error.details}`;
  }
}

function show(message: unknown): string {
  return JSON.stringify(message, (name, value) => {
    if (name === "clusterId" || name === "memberId" || name === "raftTerm") return undefined;
    if (typeof value === "bigint") return `${value}n`;
    return value instanceof Uint8Array ? toLatin1(value) : value;
  });
}

const revisionIn = (text: string): number | undefined => {
  const match = /^\{"header":\{"revision":(\d+)/.exec(text);
  return match === null ? undefined : Number(match[1]);
};

/**
 * A member's hash over all revisions that it keeps, after a linearizable read has brought it up to
 * date.
 */
async function hashOf(client: TestClient): Promise<string> {
  const { header } = await client.call(KVService.methods.Range, { key: fromLatin1("a") }, 10_000);
  const { hash, compactRevision } = await client.call(
    MaintenanceService.methods.HashKV,
    { revision: header!.revision },
    10_000,
  );
  return `hash ${hash} at revision ${header!.revision}, compacted at ${compactRevision}`;
}
