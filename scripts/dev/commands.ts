/**
 * The commands of `./dev`, as one table. A task declares its options here. A program declares its
 * options in its own file, with readArguments (command-line.ts), and gets the words as they are.
 */

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Options } from "yargs";
import { contributed } from "../contributed.ts";
import { refuse, switchOption } from "./command-line.ts";
import { shortenedTests, TURNS, testFilesOf, turnOfBuild } from "./test-files.ts";

export const ROOT = join(import.meta.dirname, "../..");

/** One run of Node: its arguments, and variables that the run has besides the caller's. */
export interface Step {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** The values of a task's command line; yargs has checked them against the declaration. */
export type Values = Readonly<Record<string, unknown>>;

/** A command whose options stand here. */
export interface Task {
  readonly about: string;
  /** Words after the command, in yargs' notation. */
  readonly words?: string;
  readonly options?: Readonly<Record<string, Options>>;
  /** The runs, in order; the first one that fails is the last. */
  readonly steps: (values: Values) => readonly Step[];
}

/** A command that is a file with a command line of its own. */
export interface Program {
  readonly about: string;
  readonly file: string;
  /** Flags for Node. */
  readonly node?: readonly string[];
  /** Words before the caller's. */
  readonly words?: readonly string[];
  /** Whether it runs members from the bundle of the tests, as a release has them. */
  readonly isBundled?: boolean;
}

export interface Group {
  readonly about: string;
  readonly commands: Readonly<Record<string, Command>>;
  /** The command that gets words which name none. */
  readonly otherwise?: string;
}

export type Command = Task | Program | Group;

export const isGroup = (command: Command): command is Group => "commands" in command;
export const isProgram = (command: Command): command is Program => "file" in command;

const BUNDLE: Step = { args: ["scripts/bundle-programs.ts"] };
const BUNDLED = { QUORATE_TEST_BUNDLE: "1" };
const GC = ["--expose-gc"];

/** The runs of a program with the caller's words. */
export function programSteps(program: Program, given: readonly string[]): readonly Step[] {
  const { file, node = [], words = [], isBundled = false } = program;
  const args = [...node, file, ...words, ...given];
  return isBundled ? [BUNDLE, { args, env: BUNDLED }] : [{ args }];
}

const program = (file: string, about: string, rest: Partial<Program> = {}): Program => ({
  about,
  file,
  ...rest,
});

const step = (...args: string[]): Step => ({ args });

const TSC = "node_modules/typescript/bin/tsc";
const TYPES = [
  step(TSC, "-p", "tsconfig.json"),
  step(TSC, "-p", "tsconfig.pure.json"),
  step("scripts/check-elements.ts"),
];
const LINT = [step("node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings")];
const GENERATORS = [
  "scripts/gen-proto.ts",
  "scripts/gen-openapi.ts",
  "scripts/gen-config-docs.ts",
  "scripts/gen-pictures.ts",
  "scripts/gen-packages.ts",
  "scripts/gen-regexes.ts",
  "scripts/gen-operator.ts",
];
const GENERATED = GENERATORS.map((file) => step(file, "--check"));
const HOUSE = [step("--test", "test/house/*.test.ts")];
const STATIC = [...TYPES, ...LINT, ...GENERATED];

const check = (about: string, steps: readonly Step[]): Task => ({ about, steps: () => steps });

/** The file names or patterns of a test run. */
function testFiles(word: string): readonly string[] {
  const ofPackage = join("packages", word);
  if (/^[\w-]+$/.test(word) && existsSync(join(ROOT, ofPackage)))
    return [`${ofPackage}/test/**/*.test.ts`];
  const path = join(ROOT, word);
  if (!existsSync(path))
    refuse(`${word} is no package, no directory and no file of this repository`);
  return [statSync(path).isDirectory() ? join(word, "**/*.test.ts") : word];
}

function testSteps(values: Values): readonly Step[] {
  const words = (values["what"] as readonly string[] | undefined) ?? [];
  const watch = values["watch"] === true ? ["--watch"] : [];
  const name = values["name"] as string | undefined;
  const pattern = name === undefined ? [] : [`--test-name-pattern=${name}`];
  if (words.length > 0) return [step("--test", ...watch, ...pattern, ...words.flatMap(testFiles))];
  const { files, leftOut } = testFilesOf(ROOT, values["all"] === true ? undefined : turnOfBuild());
  if (leftOut.length > 0)
    console.error(
      `1 of ${TURNS} slow test files belongs to this commit's build: ` +
        `./dev test --all runs the other ${leftOut.length} too`,
    );
  const concurrency = values["concurrency"] ?? process.env["QUORATE_TEST_CONCURRENCY"] ?? 4;
  return [
    BUNDLE,
    {
      args: [
        "--import",
        "./test/support/ends.ts",
        "--test",
        ...watch,
        ...pattern,
        `--test-concurrency=${concurrency}`,
        "--test-timeout=600000",
        ...files,
      ],
      env: { ...BUNDLED, NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/quorate-tests") },
    },
  ];
}

/** Tests in full, of which a build runs a part. One that hangs fails after 20 minutes. */
const inFull = (about: string, files: () => readonly string[]): Task => ({
  about,
  steps: () => [
    { args: ["--test", "--test-timeout=1200000", ...files()], env: { QUORATE_SOAK: "1" } },
  ],
});

/** A test with random input that runs for longer than in a build. */
function fuzz(about: string, args: readonly string[]): Task {
  return {
    about,
    options: {
      minutes: { type: "number", default: 10, describe: "minutes for each kind of input" },
      seed: { type: "string", describe: "repeat the case that a failure named" },
    },
    steps: ({ minutes, seed }) => [
      {
        args,
        env: {
          QUORATE_FUZZ_MINUTES: String(minutes),
          ...(seed === undefined ? {} : { QUORATE_FUZZ_SEED: String(seed) }),
        },
      },
    ],
  };
}

const bench: Group = {
  about: "measures; a word that is no command names rows, as in ./dev bench put",
  otherwise: "rows",
  commands: {
    rows: program("bench/main.ts", "rows of requests, beside etcd"),
    summary: program("bench/summary.ts", "the tables of docs/internals/benchmarks.md, from --json"),
    pairs: program("bench/pairs.ts", "two versions of this repository beside each other"),
    hold: program("bench/hold.ts", "how long one call makes all others wait"),
    latency: program("bench/latency.ts", "latency at a fixed rate"),
    security: program("bench/security.ts", "the cost of users, roles and the audit log"),
    logins: program("bench/logins.ts", "how much logins delay puts"),
    gateway: program("bench/gateway.ts", "the JSON gateways", { isBundled: true }),
    "in-process": program("bench/in-process.ts", "calls and resets of members without sockets"),
    clients: program("bench/clients.ts", "our client beside npm's etcd3, and their transports"),
    watch: program("bench/watch.ts", "many watchers on one member"),
    http: program("bench/http.ts", "puts and gets over HTTP/1.1"),
    "http-engine": program("bench/http-engine.ts", "HTTP/1.1 without work"),
    proxy: program("bench/proxy.ts", "grpc-proxy before one member"),
    space: program("bench/space.ts", "compaction and defragmentation of a full store"),
    sizes: program("bench/sizes.ts", "a store of many keys"),
    startup: program("bench/startup.ts", "the start of the command-line tools"),
    json: program("bench/json.ts", "processor time of the JSON mapping"),
    storm: program("bench/storm.ts", "a crowd of TLS clients, and the puts of others"),
    door: program(
      "packages/server/test/bench/door.ts",
      "calls through those rings, without sockets and threads",
    ),
    ring: program("bench/ring.ts", "the rings between a front-end thread and the member's"),
    cacher: program("bench/cacher.ts", "the API server's watch cache by itself", { node: GC }),
  },
};

const engineFuzz = ["--expose-gc", "--test", "packages/rpc/test/engine-fuzz.test.ts"];

const own: Group = {
  about: "the developers' program of Quorate",
  commands: {
    test: {
      about: "runs tests: all, or those of packages, directories and files",
      words: "[what..]",
      options: {
        watch: switchOption("run again when a file changes"),
        name: { type: "string", describe: "only tests whose name matches this expression" },
        all: switchOption("slow files too whose turn is another build's"),
        concurrency: {
          type: "number",
          describe: "test files at a time, of all tests ($QUORATE_TEST_CONCURRENCY, else 4)",
        },
      },
      steps: testSteps,
    },
    check: {
      about: "types, lint, generated files and house rules",
      otherwise: "all",
      commands: {
        all: check("everything", [...STATIC, ...HOUSE]),
        static: check("types, lint and generated files", STATIC),
        types: check("the type checker", TYPES),
        lint: check("the linter", LINT),
        generated: check("generated files are up to date", GENERATED),
        house: check("the rules of test/house", HOUSE),
        removal: program("test/removal/main.ts", "what is left without packages/kube-apiserver"),
      },
    },
    fix: check("formats the code", [
      step("node_modules/@biomejs/biome/bin/biome", "check", "--write"),
    ]),
    gen: {
      about:
        "writes what is generated: codecs, OpenAPI, pages, pictures, the list of proved expressions",
      options: {
        check: switchOption("write nothing, fail on differences"),
      },
      steps: (values) =>
        values["check"] === true ? GENERATED : GENERATORS.map((file) => step(file)),
    },
    docs: {
      about: "the pages of docs/, and the site that is built from them",
      otherwise: "site",
      commands: {
        site: program("scripts/site/main.ts", "builds the site, into dist/site"),
        serve: {
          about: "builds the site and serves it on 127.0.0.1",
          options: { port: { type: "number", default: 8080, describe: "port of the site" } },
          steps: ({ port }) => [step("scripts/site/main.ts", "--serve", "--port", String(port))],
        },
        check: check("their links, names and commands, and the guides as a reader runs them", [
          step("--test", "test/docs/*.test.ts"),
        ]),
      },
    },
    path: program("scripts/dev/path/main.ts", "the files and functions that one request runs"),
    bench,
    profile: program("bench/profile.ts", "one row of the benchmark under V8's profiler"),
    sim: {
      about: "simulates whole clusters from seeds",
      otherwise: "members",
      commands: {
        members: program("packages/sim/src/run/main.ts", "members on a simulated world", {
          node: ["--single-threaded-gc"],
        }),
        raft: program("packages/sim/src/raft/main.ts", "clusters of Raft machines alone"),
        cacher: program(
          "packages/kube-storage/test/cacher/history/main.ts",
          "histories of the API server's cache",
        ),
      },
    },
    fuzz: {
      about: "hostile input",
      commands: {
        json: fuzz("broken JSON for the gateway's transcoder", [
          "--test",
          "packages/proto/test/json-fuzz.test.ts",
        ]),
        http: fuzz("HTTP/1.1 requests, beside Node's strict parser", [
          "--test-name-pattern=HTTP/1.1",
          ...engineFuzz,
        ]),
        rpc: fuzz("bytes for the gRPC engine", engineFuzz),
        gateway: fuzz("requests for the JSON gateway", [
          "--expose-gc",
          "--test",
          "packages/rpc/test/gateway-fuzz.test.ts",
        ]),
        cluster: program("test/fuzz/main.ts", "requests and peers for three members"),
      },
    },
    attack: {
      about: "searches for costly requests",
      commands: {
        linear: program("test/fuzz/linear/main.ts", "texts that cost more than their length"),
        parsers: {
          about: "the same for every parser by itself",
          options: {
            sharp: { type: "number", default: 2, describe: "further texts of each kind" },
            table: switchOption("write docs/operate/security/parsers.md"),
          },
          steps: ({ sharp, table }) => [
            {
              ...step("--test", "test/linear/linear.test.ts"),
              env: {
                QUORATE_LINEAR_SHARP: String(sharp),
                ...(table === true && { QUORATE_LINEAR_TABLE: "1" }),
              },
            },
          ],
        },
      },
    },
    compare: {
      about: "the same requests to another program and to ours",
      commands: {
        etcd3: program("test/interop/etcd3/main.ts", "the suite of npm's etcd3, with our client"),
        "etcd3-faults": program(
          "test/interop/etcd3/faults-main.ts",
          "ten faults, as npm's etcd3 and our client meet them",
        ),
        v2: program("test/interop/v2/main.ts", "etcd 3.4's v2 API"),
        commands: program("test/interop/command-lines/main.ts", "etcdctl and quoratectl"),
        gateway: program("test/interop/gateway/main.ts", "etcd's JSON gateway"),
      },
    },
    clients: {
      about: "programs of others on our servers",
      commands: {
        "go-auth": program("test/interop/go-auth/main.ts", "Go's clientv3 with users"),
        "go-recipes": program("test/interop/go-recipes/main.ts", "Go's locks, queues and barriers"),
        storage: program("test/interop/kubernetes-storage/main.ts", "Kubernetes' storage tests"),
        patroni: program("test/interop/patroni/main.ts", "Patroni's whole story"),
      },
    },
    mutants: {
      about: "bugs in the source, and the tests that catch them",
      otherwise: "planted",
      commands: {
        planted: program("test/mutants/main.ts", "bugs of the catalogue", {
          node: ["--single-threaded-gc"],
        }),
        machine: program("test/mutants/machine.ts", "changes that a machine makes to files"),
      },
    },
    soak: {
      about: "long runs",
      otherwise: "members",
      commands: {
        members: inFull("the end-to-end tests, with more repetitions", () => [
          "test/e2e/*.test.ts",
        ]),
        "front-ends": inFull("front-end threads that end each second for ten minutes", () => [
          "test/e2e/front-ends.test.ts",
        ]),
        packages: inFull(
          "the npm packages: programs and examples on them, Bun, Deno, each Node, publint, attw",
          () => ["examples/*/*.test.ts", "test/docs/nodejs.test.ts", "test/docs/runtimes.test.ts"],
        ),
        whole: inFull("the packages' tests of which a build runs a part, or a smaller size", () =>
          shortenedTests(ROOT),
        ),
        leases: program("bench/leases.ts", "100,000 leases, renewed and then left to expire"),
        migrate: program(
          "test/interop/migrate/main.ts",
          "a cluster of etcd goes to Quorate and back, under load",
          { isBundled: true },
        ),
        stream: {
          about: "a range that is longer than memory",
          options: { mib: { type: "number", default: 1024, describe: "size of the range" } },
          steps: ({ mib }) => [
            {
              args: ["--test", "test/e2e/range-stream.test.ts"],
              env: { QUORATE_STREAM_MIB: String(mib) },
            },
          ],
        },
      },
    },
    robustness: {
      about: "real members under faults, judged",
      otherwise: "members",
      commands: {
        members: program(
          "test/robustness/main.ts",
          "members whose links, disks and processes fail",
        ),
      },
    },
    release: program("scripts/release.ts", "archives, Debian and npm packages, and SHA256SUMS"),
    pack: program("scripts/release.ts", "the npm packages quorate and @quorate/client", {
      words: ["--no-archives"],
    }),
    man: program("scripts/gen-man.ts", "the man pages"),
  },
};

/** Programs that a package adds to groups of the table, by the group's name. */
export type PackageCommands = Readonly<Record<string, Readonly<Record<string, Program>>>>;

function withPrograms(table: Group, added: PackageCommands): Group {
  const groups = Object.entries(added).map(([name, programs]): [string, Group] => {
    const group = table.commands[name];
    if (group === undefined || !isGroup(group)) throw new Error(`${name} is no group of commands`);
    return [name, { ...group, commands: { ...group.commands, ...programs } }];
  });
  return { ...table, commands: { ...table.commands, ...Object.fromEntries(groups) } };
}

export const commands: Group = (await contributed<{ commands: PackageCommands }>("commands"))
  .map((one) => one.commands)
  .reduce(withPrograms, own);
