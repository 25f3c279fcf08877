/**
 * The command `./dev compare v2`: a random stream of v2 requests to etcd 3.4 and to Quorate, one
 * member each.
 */

import { SeededRandom } from "@quorate/host";
import { readArguments, valueOption } from "../../../scripts/dev/command-line.ts";
import { startCluster } from "../../support/cluster.ts";
import { quorate } from "../../support/executables.ts";
import { freshSeed } from "../../support/fresh-seed.ts";
import { compare } from "./compare.ts";
import { KNOWN } from "./differences.ts";
import { etcd34, skipWithoutEtcd34 } from "./reference.ts";
import { HttpTarget } from "./target.ts";

const HELP = `./dev compare v2 [OPTIONS]

Sends random requests of the v2 API to etcd 3.4 and to Quorate, and compares status, headers and body.
ETCD34 selects another executable of etcd.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, {
    seed: valueOption("the seed (default: a fresh one, printed)"),
    requests: valueOption("how many requests", "5000"),
    show: valueOption("differences that are printed before the run ends", "10"),
  });
  if (etcd34 === undefined) throw new Error(String(skipWithoutEtcd34));
  const seed = values.seed === undefined ? BigInt(freshSeed()) : BigInt(values.seed);
  console.log(`seed ${seed}, ${values.requests} requests`);
  const clusters = await Promise.all(
    [etcd34, quorate].map((executable) =>
      startCluster({ executable, size: 1, flags: ["--enable-v2"] }),
    ),
  );
  const [reference, own] = clusters.map((cluster, i) => {
    return new HttpTarget(i === 0 ? "etcd" : "quorate", cluster.members[0].clientUrl);
  });
  try {
    const outcome = await compare({
      reference,
      own,
      dice: new SeededRandom(seed),
      known: KNOWN,
      requests: Number(values.requests),
      waitsOnPaths: true,
      maxDifferences: Number(values.show),
    });
    for (const { at, request, expected, actual } of outcome.differences)
      console.log(`\n--- request ${at}: ${request}\netcd: ${expected}\nquorate: ${actual}`);
    for (const [why, times] of outcome.known) console.log(`known, ${times} times: ${why}`);
    console.log(
      `${outcome.requests} requests, ${outcome.writes} writes: ` +
        `${outcome.differences.length} differences`,
    );
    return outcome.differences.length === 0;
  } finally {
    await Promise.all([reference.close(), own.close()]);
    await Promise.all(clusters.map((cluster) => cluster.destroy()));
  }
}

process.exitCode = (await run()) ? 0 : 1;
