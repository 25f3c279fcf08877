/**
 * Writes the pictures of docs/pictures: packages.svg from the import directions that test/house
 * checks, the charts from the table of docs/internals/benchmarks.md, and NAME.svg from each
 * NAME.txt there.
 *
 *   node scripts/gen-pictures.ts           write them
 *   node scripts/gen-pictures.ts --check   write nothing; exit 1 if one would change
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { directions } from "../test/house/directions.ts";
import { readMode } from "./generator.ts";
import { barsPicture } from "./pictures/bars.ts";
import { packagesPicture } from "./pictures/packages.ts";
import { sequencePicture } from "./pictures/sequence.ts";

const directory = join(import.meta.dirname, "../docs/pictures");

const words: Readonly<Record<string, readonly string[]>> = {
  proto: ["codecs, errors"],
  host: ["clock, randomness,", "disk, network, logs"],
  raft: ["consensus: a state", "machine without I/O"],
  rpc: ["HTTP/2 and gRPC", "for clients"],
  front: ["threads that own", "clients' connections"],
  wal: ["the log on disk", "in etcd's format"],
  bolt: ["etcd's database files"],
  store: ["keys and history, leases,", "members; apply(entry)"],
  backup: ["continuous backups,", "point-in-time restore"],
  transport: ["connections between", "members"],
  metrics: ["counters and", "their text"],
  cli: ["the shell of a", "command line"],
  member: ["one replicated member", "without any wire"],
  services: ["etcd's v3 services,", "locks, elections"],
  "http-kv": ["plain keys", "by curl"],
  v2: ["etcd's", "v2 API"],
  console: ["a page to", "look at"],
  server: ["configuration,", "assembly, endpoints"],
  client: ["the TypeScript client"],
  ctl: ["quoratectl and", "quorateutl"],
  "kube-storage": ["Kubernetes'", "storage layer"],
  "kube-apiserver": ["an API server", "on it"],
  operator: ["clusters as", "Kubernetes' objects"],
  shadow: ["a learner beside", "etcd's voters"],
  quorate: ["the program"],
  embed: ["members inside", "a program"],
  testing: ["clusters in tests"],
  create: ["npm create", "quorate"],
};

/** The bars of a chart, from the first column of its cluster. */
const seriesFrom = (column: number) => [
  { name: "throughput (more is better)", column, fill: "#3b7dd8" },
  { name: "processor time a request (less is better)", column: column + 2, fill: "#e0963a" },
];

function main(args: string[]): number {
  const mode = readMode("gen-pictures.ts", "the pictures of docs/pictures", args);
  const imports = Object.fromEntries(
    Object.entries(directions).map(([name, others]) => [name, [...others.keys()]]),
  );
  const benchmarks = readFileSync(join(directory, "../internals/benchmarks.md"), "utf8");
  const pictures = new Map([
    ["packages.svg", packagesPicture({ imports, words })],
    ["benchmarks-one.svg", barsPicture("One member, divided by etcd", benchmarks, seriesFrom(1))],
    [
      "benchmarks-three.svg",
      barsPicture("Three members with TLS, divided by etcd", benchmarks, seriesFrom(4)),
    ],
  ]);
  for (const name of readdirSync(directory)
    .filter((one) => one.endsWith(".txt"))
    .sort())
    pictures.set(
      name.replace(/txt$/, "svg"),
      sequencePicture(readFileSync(join(directory, name), "utf8")),
    );
  const stale = [...pictures].filter(
    ([name, svg]) =>
      !existsSync(join(directory, name)) || readFileSync(join(directory, name), "utf8") !== svg,
  );
  if (mode === "write") for (const [name, svg] of stale) writeFileSync(join(directory, name), svg);
  else if (stale.length > 0) {
    console.error(
      `out of date: ${stale.map(([name]) => `docs/pictures/${name}`).join(", ")}; run node scripts/gen-pictures.ts`,
    );
    return 1;
  }
  return 0;
}

process.exitCode = main(process.argv.slice(2));
