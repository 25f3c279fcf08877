/**
 * ./dev robustness apiserver: two API servers on a cluster of three members, under load, while the
 * cluster's leader and the servers are killed with SIGKILL.
 *
 *     ./dev robustness apiserver [--seconds 60] [--seed 1]
 *
 * No acknowledged write may be lost, and no informer may miss an event or see one twice. It prints
 * how often informers had to list again.
 */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SeededRandom } from "@quorate/host";
import { readArguments, valueOption } from "../../../../scripts/dev/command-line.ts";
import { leaderOf } from "../../../../test/support/checks.ts";
import { startCluster, type TestCluster } from "../../../../test/support/cluster.ts";
import { freePorts } from "../../../../test/support/ports.ts";
import { ApiClient } from "./api-client.ts";
import { ApiProcess, TOKEN } from "./api-process.ts";
import { Counters, SELECTOR } from "./counters.ts";
import { Informer } from "./informer.ts";

const { values } = readArguments(
  "./dev robustness apiserver [OPTIONS]: API servers under load, which are killed with the leader",
  {
    seconds: valueOption("duration of the run", "60"),
    seed: valueOption("of all choices", "1"),
  },
);
const PATH = "/api/v1/namespaces/default/configmaps";
const COUNTERS = 20;
const WRITERS = 8;
const INFORMERS = 10;
const CALM_MS = 3000;
const DOWN_MS = 1500;
const CONVERGE_LIMIT_MS = 30_000;

const random = new SeededRandom(BigInt(values.seed));

/** Kills the leader and the servers in turn until the time is over. */
async function killInTurn(cluster: TestCluster, servers: readonly ApiProcess[]): Promise<string[]> {
  const endMs = performance.now() + Number(values.seconds) * 1000;
  const killed: string[] = [];
  for (let turn = 0; performance.now() < endMs; turn++) {
    await delay(CALM_MS + random.below(2000));
    const server = servers[turn % 4 === 1 ? 0 : 1];
    if (turn % 2 === 0) {
      const leader = await leaderOf(cluster);
      await leader.kill();
      killed.push(leader.name);
      await delay(DOWN_MS);
      leader.start();
      await leader.waitReady();
    } else {
      await server.kill();
      killed.push(`API server ${servers.indexOf(server)}`);
      await delay(random.below(DOWN_MS));
      server.start();
      const startMs = performance.now();
      await server.waitReady();
      killed.push(`(ready after ${Math.round(performance.now() - startMs)} ms)`);
    }
  }
  return killed;
}

async function valuesOf(client: ApiClient): Promise<Map<string, number>> {
  const { code, body } = await client.call("GET", `${PATH}?labelSelector=${SELECTOR}`);
  assert.equal(code, 200);
  return new Map(
    body.items.map(
      ({ metadata, data }: { metadata: { name: string }; data: { count: string } }) =>
        [metadata.name, Number(data.count)] as const,
    ),
  );
}

/** Waits until every informer has what a list has. */
async function converge(informers: readonly Informer[], wanted: ReadonlyMap<string, number>) {
  const differs = ({ counters }: Informer) =>
    counters.size !== wanted.size || [...wanted].some(([name, n]) => counters.get(name) !== n);
  const startMs = performance.now();
  while (informers.some(differs) && performance.now() - startMs < CONVERGE_LIMIT_MS)
    await delay(20);
  assert.equal(informers.filter(differs).length, 0, "informers that have not converged");
  return performance.now() - startMs;
}

async function main(dir: string): Promise<void> {
  const cluster = await startCluster({ size: 3 });
  const clients = (await freePorts(2)).map((port) => new ApiClient(port, TOKEN));
  const servers = clients.map(
    (client, i) => new ApiProcess(join(dir, `api${i}`), cluster.endpoints, client),
  );
  try {
    for (const server of servers) {
      server.start();
      await server.waitReady();
    }
    const names = Array.from({ length: COUNTERS }, (_, i) => `counter-${i}`);
    const counters = new Counters(clients, PATH, names);
    await counters.create();
    const informers = Array.from({ length: INFORMERS }, (_, i) => new Informer(clients, PATH, i));
    const running = informers.map((informer) => informer.run());
    const writing = Array.from({ length: WRITERS }, (_, i) =>
      counters.count(i, () => random.below(COUNTERS)),
    );
    const killed = await killInTurn(cluster, servers);
    await delay(CALM_MS);
    counters.isOver = true;
    await Promise.all(writing);
    const wanted = await valuesOf(clients[0]);
    assert.deepEqual(await valuesOf(clients[1]), wanted, "both servers list the same");
    const convergedMs = await converge(informers, wanted);
    for (const informer of informers) informer.stop();
    await Promise.all(running);
    const problems = [
      ...counters.problemsOf(wanted),
      ...informers.flatMap(({ problems }) => problems),
    ];
    const sum = (of: (informer: Informer) => number) =>
      informers.reduce((total, informer) => total + of(informer), 0);
    console.log(`killed: ${killed.join(", ")}`);
    console.log(
      `${counters.acknowledged} increments acknowledged, ${counters.conflicts} conflicts, ${counters.failures} calls failed`,
    );
    const [events, watches, relists] = [
      sum((informer) => informer.events),
      sum((informer) => informer.watches),
      sum((informer) => informer.lists - 1),
    ];
    console.log(`${INFORMERS} informers: ${events} events, ${watches} watches, ${relists} relists`);
    console.log(`they converged after ${Math.round(convergedMs)} ms`);
    assert.deepEqual(problems, []);
  } catch (error) {
    for (const server of servers) console.error(server.logTail());
    throw error;
  } finally {
    for (const server of servers) await server.kill();
    for (const client of clients) await client.close();
    await cluster.destroy();
  }
}

const dir = mkdtempSync(join(tmpdir(), "quorate-kill-"));
try {
  await main(dir);
} finally {
  rmSync(dir, { recursive: true, force: true });
}
