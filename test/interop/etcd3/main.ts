/**
 * The command `./dev compare etcd3`: the test suite of npm's etcd3 with that package and with
 * @quorate/client/etcd3, on etcd and on a Quorate member; a row for each test.
 */
import { readArguments, valueOption } from "../../../scripts/dev/command-line.ts";
import { startCluster } from "../../support/cluster.ts";
import { etcd, etcdNewest, quorate } from "../../support/executables.ts";
import { REASONS } from "./reasons.ts";
import { type Client, type Outcome, prepareSuite, runSuite, type Suite } from "./suite.ts";

const HELP = `./dev compare etcd3 [OPTIONS]

Runs the suite of npm's etcd3, from its repository and with the test tools that it names, in a
temporary directory: with that package and with @quorate/client/etcd3, on etcd and on Quorate.`;

/** One column of the table. */
interface Column {
  readonly name: string;
  readonly outcomes: ReadonlyMap<string, Outcome>;
}

async function columns(suite: Suite, clients: readonly Client[]): Promise<readonly Column[]> {
  const made: Column[] = [];
  for (const executable of [etcdNewest ?? etcd, quorate]) {
    if (executable === undefined) {
      console.error("etcd is not installed: without its columns");
      continue;
    }
    // Its members have the certificates of the suite, which the suite verifies.
    const tls = { identity: suite.identity, flagsOf: () => suite.memberFlags };
    const cluster = await startCluster({ executable, size: 1, tls });
    try {
      for (const client of clients) {
        const outcomes = await runSuite(suite, client, cluster.members[0]!.clientAddress);
        made.push({ name: `${client} on ${executable.name}`, outcomes });
      }
    } finally {
      await cluster.destroy();
    }
  }
  return made;
}

function shown(outcome: Outcome | undefined): string {
  return outcome === undefined ? "–" : outcome.state;
}

/** A row for each test. Returns whether every difference has a reason. */
function printTable(made: readonly Column[]): boolean {
  const tests = [...new Set(made.flatMap(({ outcomes }) => [...outcomes.keys()]))];
  const names = made.map(({ name }) => name);
  console.log(`| test | ${names.join(" | ")} | reason |`);
  console.log(`|---|${"---|".repeat(made.length)}---|`);
  const unexplained: string[] = [];
  for (const test of tests) {
    const states = made.map(({ outcomes }) => shown(outcomes.get(test)));
    const isEqual = new Set(states).size === 1 && states[0] !== "failed";
    const reason = isEqual ? "" : REASONS.find(([part]) => test.includes(part))?.[1];
    if (reason === undefined) unexplained.push(test);
    console.log(`| ${test} | ${states.join(" | ")} | ${reason ?? "?"} |`);
  }
  const passed = made.map(({ outcomes }) => {
    const states = [...outcomes.values()].map(({ state }) => state);
    return `${states.filter((state) => state === "passed").length} of ${states.length}`;
  });
  console.log(`| **passed** | ${passed.join(" | ")} | |`);
  for (const test of unexplained)
    for (const { name, outcomes } of made)
      if (outcomes.get(test)?.state === "failed")
        console.error(`${name}: ${test}: ${outcomes.get(test)!.message}`);
  return unexplained.length === 0;
}

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, {
    source: valueOption("a checkout of microsoft/etcd3, or its git directory (default: cloned)"),
    modules: valueOption("a node_modules with the suite's test tools (default: installed)"),
    client: {
      type: "string",
      choices: ["npm", "ours"],
      describe: "only this client",
    },
  });
  const source = values.source ?? "https://github.com/microsoft/etcd3.git";
  const suite = await prepareSuite(source, values.modules).catch((error: Error) => error);
  if (suite instanceof Error) {
    console.log(`skipped: the suite of npm's etcd3 cannot be had: ${suite.message.split("\n")[0]}`);
    return true;
  }
  using _ = suite;
  const clients = (["npm", "ours"] as const).filter((one) => (values.client ?? one) === one);
  return printTable(await columns(suite, clients));
}

process.exitCode = (await run()) ? 0 : 1;
