/** The suite of npm's etcd3, made ready in a temporary directory, and run by its own test tools. */
import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import type { ClientIdentity } from "../../../scripts/cluster/health.ts";

const root = join(import.meta.dirname, "../../..");
const execute = promisify(execFile);

/** The package that the suite tests: npm's etcd3, or our subpath in its shape. */
export type Client = "npm" | "ours";

/** How a test ended. */
export interface Outcome {
  readonly state: "passed" | "failed" | "skipped";
  /** Why it failed. */
  readonly message: string;
}

export interface Suite extends Disposable {
  readonly dir: string;
  /** How the suite's clients know the member. */
  readonly identity: ClientIdentity;
  /** Flags with the member's certificate. */
  readonly memberFlags: readonly string[];
}

/** The tools that the suite's package.json names, as of its last release. */
const TOOLS = [
  "mocha@10.8.2",
  "chai@4.5.0",
  "chai-as-promised@7.1.2",
  "chai-subset@1.6.0",
  "sinon@15.2.0",
  "rxjs@7.8.2",
];

/** What the tests import from beside them, and the file of ours that has it. */
const PARTS: Readonly<Record<string, string>> = {
  index: "index",
  "connection-pool": "pool",
  election: "election",
  errors: "errors",
  range: "range",
  stm: "stm",
};

/**
 * @param source a checkout, a git directory, or a URL to clone
 * @param modules a node_modules with TOOLS. Rejects where one of both cannot be had
 */
export async function prepareSuite(source: string, modules?: string): Promise<Suite> {
  const dir = mkdtempSync(join(tmpdir(), "quorate-etcd3-suite-"));
  const remove = (): void => rmSync(dir, { recursive: true, force: true });
  try {
    await copySources(source, dir);
    if (modules === undefined) await installTools(dir);
    else symlinkModules(resolve(modules), join(dir, "node_modules"));
    for (const name of ["@grpc", "cockatiel", "bignumber.js", "etcd3"]) {
      const target = join(dir, "node_modules", name);
      if (!existsSync(target)) symlinkSync(join(root, "node_modules", name), target);
    }
    for (const client of ["npm", "ours"] as const) await compile(dir, client);
    const certs = join(dir, "src/test/certs");
    return {
      dir,
      identity: { ca: readFileSync(join(certs, "certs/ca.crt"), "utf8") },
      memberFlags: [
        `--cert-file=${join(certs, "certs/etcd0.localhost.crt")}`,
        `--key-file=${join(certs, "private/etcd0.localhost.key")}`,
        `--peer-auto-tls`,
      ],
      [Symbol.dispose]: remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
}

async function copySources(source: string, dir: string): Promise<void> {
  if (existsSync(join(source, "src/test"))) {
    cpSync(join(source, "src"), join(dir, "src"), { recursive: true });
    return;
  }
  const clone = join(dir, "clone");
  await execute("git", ["clone", "--quiet", "--depth=1", source, clone], { timeout: 120_000 });
  cpSync(join(clone, "src"), join(dir, "src"), { recursive: true });
}

async function installTools(dir: string): Promise<void> {
  writeFileSync(join(dir, "package.json"), '{ "private": true }');
  const words = ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...TOOLS];
  await execute("npm", words, { cwd: dir, timeout: 300_000 });
}

function symlinkModules(from: string, to: string): void {
  mkdirSync(to);
  for (const name of readdirSync(from)) symlinkSync(join(from, name), join(to, name));
}

/** The tests as CommonJS, beside modules that stand for the client's. */
async function compile(dir: string, client: Client): Promise<void> {
  const tests = join(dir, client, "lib/test");
  mkdirSync(tests, { recursive: true });
  for (const name of readdirSync(join(dir, "src/test")).filter((one) => one.endsWith(".ts"))) {
    const text = readFileSync(join(dir, "src/test", name), "utf8");
    const { code } = await transform(text, { loader: "ts", format: "cjs", target: "node20" });
    writeFileSync(join(tests, name.replace(/\.ts$/, ".js")), code);
  }
  // The tests read certificates from there.
  symlinkSync(join(dir, "src"), join(dir, client, "src"));
  const npm = (name: string): string => join(root, "node_modules/etcd3/lib", `${name}.js`);
  for (const [name, ours] of Object.entries(PARTS)) {
    const file = client === "npm" ? npm(name) : join(root, "packages/client/etcd3", `${ours}.ts`);
    writeFileSync(join(dir, client, "lib", `${name}.js`), reExport(file, name === "stm"));
  }
  // What the tests help themselves with.
  writeFileSync(join(dir, client, "lib/util.js"), reExport(npm("util")));
}

/** @param isStm its enum is only there for the compiler, in npm's etcd3 */
function reExport(file: string, isStm = false): string {
  const all = `require(${JSON.stringify(file)})`;
  if (!isStm) return `module.exports = ${all};\n`;
  const names = ["SerializableSnapshot", "Serializable", "RepeatableReads", "ReadCommitted"];
  const isolation = Object.fromEntries(names.map((name, index) => [name, index]));
  return `module.exports = { Isolation: ${JSON.stringify(isolation)}, ...${all} };\n`;
}

/** What mocha's JSON has of a test. */
interface Reported {
  readonly fullTitle: string;
  readonly err: { readonly message?: string };
}

/**
 * npm's etcd3 gives Node the address of a member as a TLS server name, which Node refuses since
 * version 24; without this, it reaches no member of the suite.
 */
const ADDRESS_AS_NAME = `
const tls = require("node:tls");
const { isIP } = require("node:net");
const { connect } = tls;
tls.connect = (options, ...rest) =>
  connect(isIP(options?.servername) ? { ...options, servername: "" } : options, ...rest);
`;

/**
 * Runs all tests, file by file. What fails among others runs once more alone, since tests that fail
 * leave a proxy or a false clock behind. @param address of the member, with TLS
 */
export async function runSuite(
  { dir }: Suite,
  client: Client,
  address: string,
): Promise<ReadonlyMap<string, Outcome>> {
  const home = join(dir, client);
  writeFileSync(join(dir, "npm/address-as-name.cjs"), ADDRESS_AS_NAME);
  const preload = client === "npm" ? ["--require=./address-as-name.cjs"] : [];
  const files = readdirSync(join(home, "lib/test")).filter((one) => one.endsWith(".test.js"));
  const outcomes = new Map<string, Outcome>();
  for (const file of files) {
    const path = `lib/test/${file}`;
    const listed = await mocha(home, address, [...preload, "--dry-run", path]);
    const ended = await mocha(home, address, [...preload, path]);
    for (const title of listed.keys()) {
      let outcome = ended.get(title);
      if (outcome === undefined || outcome.state === "failed") {
        const alone = await mocha(home, address, [...preload, path, "--fgrep", title]);
        outcome = alone.get(title) ?? [...alone.values()][0];
      }
      outcomes.set(title, outcome ?? { state: "failed", message: "it did not run" });
    }
  }
  return outcomes;
}

async function mocha(
  home: string,
  address: string,
  words: readonly string[],
): Promise<ReadonlyMap<string, Outcome>> {
  const report = join(home, "report.json");
  rmSync(report, { force: true });
  const all = [
    join(home, "../node_modules/mocha/bin/mocha.js"),
    "--no-config",
    "--exit",
    "--timeout=10000",
    "--require=./lib/test/_setup.js",
    "--reporter=json",
    `--reporter-option=output=${report}`,
    ...words,
  ];
  const env = { ...process.env, ETCD_ADDR: address, ETCD_VERSION: "3.7.0", NODE_OPTIONS: "" };
  // It leaves with the number of tests that failed.
  await execute(process.execPath, all, { cwd: home, env, maxBuffer: 1 << 26 }).catch(
    (error: Error) => {
      if (!existsSync(report)) throw error;
    },
  );
  const { passes, failures, pending } = JSON.parse(readFileSync(report, "utf8")) as Record<
    "passes" | "failures" | "pending",
    readonly Reported[]
  >;
  const outcomes = new Map<string, Outcome>();
  const note = (tests: readonly Reported[], state: Outcome["state"]): void => {
    for (const { fullTitle, err } of tests)
      outcomes.set(fullTitle, { state, message: err.message ?? "" });
  };
  note(passes, "passed");
  note(pending, "skipped");
  note(failures, "failed");
  return outcomes;
}
