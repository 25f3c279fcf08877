/**
 * `./dev soak migrate-apiserver`: a kube-apiserver (on PATH) stays up while the etcd below it goes to
 * Quorate and back. Clients of it create, count up, list and watch config maps, and renew a lease.
 */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { readArguments } from "../../../../scripts/dev/command-line.ts";
import {
  type Load,
  type MoveOptions,
  type Release,
  thereAndBack,
  timedLines,
  withMove,
} from "../../../../test/interop/migrate/move.ts";
import { SeededRandom } from "../../../../test/support/random.ts";
import { until } from "../../../../test/support/until.ts";
import { withKubeApiserver } from "../interop/kube-process.ts";
import { type Answer, ApiClient } from "./api-client.ts";
import { Counters, SELECTOR } from "./counters.ts";
import { Informer } from "./informer.ts";

const { values } = readArguments(
  "./dev soak migrate-apiserver [OPTIONS]: etcd below a kube-apiserver goes to Quorate and back",
  {
    from: {
      type: "string",
      choices: ["3.5", "3.6", "3.7"],
      default: "3.7",
      describe: "release of etcd",
    },
  },
);
const MAPS = "/api/v1/namespaces/default/configmaps";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const COUNTERS = 20;
const WRITERS = 8;
const INFORMERS = 4;
const RETRY_MS = 50;
const TURN_MS = 50;
const LIST_LIMIT = 5;
const [CREATED, CONFLICT] = [201, 409];

class KubeLoad implements Load {
  readonly #client: ApiClient;
  readonly #counters: Counters;
  readonly #informers: readonly Informer[];
  #running: Promise<unknown> = Promise.resolve();
  #turns = 0;
  #failures = 0;
  /** The longest time between two calls of one client that succeeded. */
  #longestMs = 0;

  constructor(client: ApiClient) {
    this.#client = client;
    const names = Array.from({ length: COUNTERS }, (_, i) => `counter-${i}`);
    this.#counters = new Counters([client], MAPS, names);
    this.#informers = Array.from({ length: INFORMERS }, () => new Informer([client], MAPS, 0));
  }

  async start(): Promise<void> {
    const random = new SeededRandom(1);
    await this.#counters.create();
    this.#running = Promise.all([
      this.#turnsOf(),
      ...this.#informers.map((informer) => informer.run()),
      ...Array.from({ length: WRITERS }, () =>
        this.#counters.count(0, () => random.below(COUNTERS)),
      ),
    ]);
    this.#running.catch(() => {});
  }

  /** Creates an object, renews a lease, lists: revisions only rise. */
  async #turnsOf(): Promise<void> {
    let revision = 0;
    const rises = (to: string): void => {
      assert.ok(Number(to) >= revision, `revision ${to} after ${revision}`);
      revision = Number(to);
    };
    const meta = { name: "holder" };
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: meta };
    await this.#retried("POST", LEASES, { ...lease, spec: {} });
    for (; !this.#counters.isOver; this.#turns++) {
      const metadata = { name: `made-${this.#turns}` };
      const made = await this.#retried("POST", MAPS, { kind: "ConfigMap", metadata });
      assert.ok(made.code === CREATED || made.code === CONFLICT, String(made.code));
      const { body: held } = await this.#retried("GET", `${LEASES}/${meta.name}`);
      rises(held.metadata.resourceVersion);
      const spec = { ...held.spec, renewTime: new Date().toISOString().replace("Z", "000Z") };
      await this.#retried("PUT", `${LEASES}/${meta.name}`, { ...held, spec });
      const { body: list } = await this.#retried("GET", `${MAPS}?limit=${LIST_LIMIT}`);
      rises(list.metadata.resourceVersion);
      await delay(TURN_MS);
    }
  }

  /** A call, again until the server has an answer. */
  async #retried(method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<Answer> {
    for (const beginMs = performance.now(); ; ) {
      const answer = await this.#client.call(method, path, body).catch(() => undefined);
      if (answer !== undefined && answer.code < 500) {
        this.#longestMs = Math.max(this.#longestMs, performance.now() - beginMs);
        return answer;
      }
      this.#failures++;
      await delay(RETRY_MS);
    }
  }

  async judge(): Promise<string> {
    const counters = this.#counters;
    counters.isOver = true;
    await until("the clients have ended", async () => {
      const { body } = await this.#retried("GET", `${MAPS}?labelSelector=${SELECTOR}`);
      const wanted = new Map<string, number>(
        body.items.map(
          ({ metadata, data }: { metadata: { name: string }; data: { count: string } }) =>
            [metadata.name, Number(data.count)] as const,
        ),
      );
      assert.deepEqual(counters.problemsOf(wanted), []);
      return this.#informers.every((one) =>
        [...wanted].every(([name, n]) => one.counters.get(name) === n),
      );
    });
    for (const informer of this.#informers) informer.stop();
    await this.#running;
    assert.deepEqual(
      this.#informers.flatMap(({ problems }) => problems),
      [],
      "each event once",
    );
    const sum = (of: (informer: Informer) => number) =>
      this.#informers.reduce((total, informer) => total + of(informer), 0);
    return (
      `kube-apiserver: ${counters.acknowledged} increments, ${counters.conflicts} conflicts, ` +
      `${this.#turns} objects made and leases renewed; ` +
      `${counters.failures + this.#failures} calls failed and were repeated, longest wait ` +
      `${this.#longestMs.toFixed(0)} ms; ${INFORMERS} informers: ${sum(({ events }) => events)} ` +
      `events once each, ${sum(({ watches }) => watches)} watches, ` +
      `${sum(({ lists }) => lists - 1)} relists; resource versions only rose`
    );
  }

  async close(): Promise<void> {
    this.#counters.isOver = true;
    for (const informer of this.#informers) informer.stop();
    await this.#client.close();
  }
}

const options: MoveOptions = {
  release: values.from as Release,
  tls: true,
  users: false,
  rehearsed: false,
  restSeconds: 5,
  log: timedLines(),
};
await withMove(options, async (moving, surroundings) => {
  const { cluster, client } = surroundings;
  const { ca, client: cert, clientKey } = cluster.certs!;
  const tls = [`--etcd-cafile=${ca}`, `--etcd-certfile=${cert}`, `--etcd-keyfile=${clientKey}`];
  await withKubeApiserver(
    client.endpoints.join(","),
    async ({ url, headers }) => {
      const token = headers["authorization"]!.replace("Bearer ", "");
      const load = new KubeLoad(new ApiClient(Number(new URL(url).port), token));
      await load.start();
      await thereAndBack(options, moving, surroundings, [load]);
    },
    () => tls,
  );
});
