/**
 * A shadow beside three members of etcd, under kube-apiserver's load and random load, for as long
 * as --minutes says. Prints what its report says each minute, and ends with code 1 where it is not
 * "equal". Needs kube-apiserver and etcd on PATH.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { readArguments } from "../../../../scripts/dev/command-line.ts";
import { withCluster } from "../../../../test/support/cluster.ts";
import { etcd, etcdNewest } from "../../../../test/support/executables.ts";
import { SeededRandom } from "../../../../test/support/random.ts";
import { randomLoad, TestShadow } from "../../../../test/support/shadow.ts";
import { withKubeApiserver } from "./kube-process.ts";
import { type ApiAccess, exchange } from "./rest/exchange.ts";

const { values } = readArguments("./dev soak shadow: a shadow beside etcd under kube-apiserver", {
  minutes: { type: "number", default: 60, describe: "how long the load lasts" },
  seed: { type: "number", default: 1, describe: "of the random load" },
});

const executable = etcdNewest ?? etcd;
if (executable === undefined) throw new Error("etcd is not on PATH");

/** Objects are made, changed, listed and deleted over the API server. */
async function kubeLoad(access: ApiAccess, stop: AbortSignal): Promise<number> {
  const path = "/api/v1/namespaces/default/configmaps";
  let requests = 0;
  const call = async (method: string, at: string, body?: unknown): Promise<void> => {
    await exchange(access, { method, path: at, ...(body === undefined ? {} : { body }) });
    requests++;
  };
  for (let round = 0; !stop.aborted; round++) {
    const name = `soak-${round % 50}`;
    const object = { metadata: { name }, data: { round: `${round}`, text: "x".repeat(300) } };
    await call("POST", path, object).catch(() => {});
    await call("PUT", `${path}/${name}`, { ...object, data: { round: "again" } }).catch(() => {});
    if (round % 5 === 0) await call("GET", path).catch(() => {});
    if (round % 2 === 0) await call("DELETE", `${path}/${name}`).catch(() => {});
    await delay(50);
  }
  return requests;
}

/** Resident MiB and processor seconds of a process. */
function costOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  const seconds = (Number(stat[11]) + Number(stat[12])) / 100;
  return `${Math.round((Number(stat[21]) * 4096) / 2 ** 20)} MiB, ${seconds.toFixed(0)} s of processor`;
}

await withCluster({ executable }, async (cluster) => {
  const shadow = await TestShadow.of(cluster, "shadow");
  await withKubeApiserver(cluster.endpoints.join(","), async (access) => {
    const stop = new AbortController();
    const random = randomLoad(
      { endpoints: cluster.endpoints },
      new SeededRandom(values.seed),
      stop.signal,
      {
        writers: 4,
        pauseMs: 20,
        compactEveryMs: 30_000,
        keptRevisions: 2000,
      },
    );
    const kube = kubeLoad(access, stop.signal);
    shadow.start();
    await shadow.reports("equal", ({ comparisons }) => comparisons.equal > 0);
    for (let minute = 1; minute <= values.minutes; minute++) {
      await delay(60_000);
      const { verdict, comparisons, compactions, store, requestsPerSecond } = shadow.report()!;
      const rate = requestsPerSecond.toFixed(0);
      console.log(
        `minute ${minute}: ${verdict}; ${comparisons.equal} comparisons, ${compactions.equal} after ` +
          `compactions; ${rate} requests/s, ${store.lagEntries} behind; ${costOf(shadow.pid)}`,
      );
    }
    stop.abort();
    console.log(`random load: ${JSON.stringify(await random)}; requests of the API: ${await kube}`);
  });
  process.exitCode = (await shadow.end("SIGTERM")) ?? 1;
  console.log(JSON.stringify(shadow.report(), undefined, 2));
});
