/** The command `./dev compare defaults`: the objects that kube-apiserver makes at its start. */
import { writeFileSync } from "node:fs";
import { readArguments } from "../../../../../scripts/dev/command-line.ts";
import { comparisonOptions } from "../comparison.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { defaultsOf, keptDefaults, keptPath, withOurs } from "./defaults.ts";

const HELP = `./dev compare defaults [OPTIONS]

Compares the FlowSchemas, PriorityLevelConfigurations and PriorityClasses of a new API server of
ours with those of kube-apiserver 1.36.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, comparisonOptions("objects"));
  const { etcd } = values;
  const theirs = etcd === undefined ? keptDefaults() : await withKubeApiserver(etcd, defaultsOf);
  if (values.record) writeFileSync(keptPath, theirs);
  const ours = await withOurs(defaultsOf);
  const known = new Set(theirs.split("\n---\n"));
  const differences = ours.split("\n---\n").filter((one) => !known.has(one));
  for (const one of differences) console.log(`${one}\n---`);
  console.log(`${known.size} objects, ${differences.length} differences`);
  return ours === theirs;
}

process.exitCode = (await run()) ? 0 : 1;
