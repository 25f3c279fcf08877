/**
 * Rows with clients that others wrote, as a check of our generator: npm's etcd3 in this
 * process, and etcd's own benchmark tool (Go's clientv3) where it is installed, as $ETCD_BENCHMARK
 * or `benchmark` on the PATH. To build it, in an empty directory:
 *
 *   go mod init bench && go get go.etcd.io/etcd/v3/tools/benchmark@v3.6.8
 *   go build -o ~/bin/benchmark go.etcd.io/etcd/v3/tools/benchmark
 */
import { spawn } from "node:child_process";
import { Etcd3 } from "etcd3";
import type { CertificateFiles } from "../scripts/certs.ts";
import { findProgram } from "../test/support/executables.ts";
import type { Target } from "./calls.ts";
import { randomUint32 } from "./keys.ts";
import type { Load, LoadEvents } from "./load.ts";
import { cpuSeconds } from "./usage.ts";

/** Puts through npm's etcd3, whose gRPC is @grpc/grpc-js; a connection for ten clients. */
export class NpmClientLoad implements Load {
  readonly clients: number;
  readonly unitsPerCall = 1;
  revisions = 0;
  readonly #target: Target;
  readonly #keys: readonly string[];
  readonly #value: Buffer;
  readonly #random = randomUint32(42);
  #etcd3: Etcd3[] = [];
  #events: LoadEvents | undefined;

  constructor(target: Target, clients: number, keys: readonly Buffer[], value: Buffer) {
    this.#target = target;
    this.clients = clients;
    this.#keys = keys.map((key) => key.toString("latin1"));
    this.#value = value;
  }

  async open(events: LoadEvents): Promise<void> {
    this.#events = events;
    const { urls, identity } = this.#target;
    const { ca, cert, key } = identity;
    // It would send an address as the name of the TLS server, which Node refuses.
    const hosts = urls.map((url) => url.replace("127.0.0.1", "localhost"));
    const pem = (text: string): Buffer => Buffer.from(text);
    const credentials =
      ca === undefined
        ? undefined
        : { rootCertificate: pem(ca), certChain: pem(cert!), privateKey: pem(key!) };
    this.#etcd3 = Array.from({ length: Math.ceil(this.clients / 10) }, (_, index) => {
      const host = hosts[index % hosts.length];
      return credentials === undefined
        ? new Etcd3({ hosts: host })
        : new Etcd3({ hosts: host, credentials });
    });
  }

  start(client: number): void {
    const key = this.#keys[this.#random() % this.#keys.length];
    this.#etcd3[client % this.#etcd3.length]
      .put(key)
      .value(this.#value)
      .exec()
      .then(
        () => {
          this.revisions++;
          this.#events!.done(client, true);
        },
        (error: Error) => this.#events!.failed(error),
      );
  }

  flush(): void {}

  close(): void {
    for (const one of this.#etcd3) one.close();
  }
}

/** The path of etcd's benchmark tool, or undefined. */
export const goBenchmark: string | undefined =
  process.env["ETCD_BENCHMARK"] ?? findProgram("benchmark");

/** What a row of the tool does. */
export interface GoLoad {
  /** Calls in all. */
  readonly total: number;
  readonly keyCount: number;
  readonly valueBytes: number;
  /** A key that exists. */
  readonly key: Buffer;
}

/** A row that the tool drives. */
export interface GoRow {
  readonly name: string;
  readonly clients: number;
  /** This part of --go-puts: one client alone takes as long as many with all. */
  readonly part: number;
  /** The tool's command and its flags. */
  command(load: GoLoad): readonly string[];
}

/** Clients share so many connections at most. */
const MAX_CONNECTIONS = 100;

const putFlags = ({ total, keyCount, valueBytes }: GoLoad): readonly string[] => [
  "--key-size=8",
  `--val-size=${valueBytes}`,
  `--key-space-size=${keyCount}`,
  `--total=${total}`,
];

const put = (load: GoLoad): readonly string[] => ["put", ...putFlags(load)];
const get = ({ key, total }: GoLoad): readonly string[] => [
  "range",
  key.toString("latin1"),
  "--consistency=l",
  `--total=${total}`,
];

/** The rows of the tool, in the order in which they run. */
export const goRows: readonly GoRow[] = [
  { name: "put by Go's clientv3, 1 client", clients: 1, part: 0.05, command: put },
  { name: "put by Go's clientv3, 100 clients", clients: 100, part: 1, command: put },
  { name: "put by Go's clientv3, 1000 clients", clients: 1000, part: 1, command: put },
  { name: "get by Go's clientv3, 100 clients", clients: 100, part: 1, command: get },
  { name: "get by Go's clientv3, 1000 clients", clients: 1000, part: 1, command: get },
  {
    name: "txn of a put by Go's clientv3, 100 clients",
    clients: 100,
    part: 1,
    command: (load) => ["txn-put", "--txn-ops=1", ...putFlags(load)],
  },
];

export interface GoResult {
  readonly ratePerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly generatorCpuS: number;
  readonly elapsedS: number;
}

/**
 * Runs a command of etcd's benchmark tool with so many clients. Throws if it fails or prints what
 * cannot be read.
 */
export async function runGoBenchmark(
  program: string,
  target: Target,
  certs: CertificateFiles | undefined,
  clients: number,
  command: readonly string[],
): Promise<GoResult> {
  const tls =
    certs === undefined
      ? []
      : [`--cacert=${certs.ca}`, `--cert=${certs.client}`, `--key=${certs.clientKey}`];
  const endpoints = target.urls
    .map((url) => (certs === undefined ? new URL(url).host : url))
    .join(",");
  const child = spawn(
    program,
    [
      `--endpoints=${endpoints}`,
      `--conns=${Math.min(clients, MAX_CONNECTIONS)}`,
      `--clients=${clients}`,
      ...tls,
      ...command,
    ],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const pids = [child.pid!];
  let output = "";
  child.stdout.on("data", (bytes) => (output += bytes));
  child.stderr.on("data", (bytes) => (output += bytes));
  // Its last look before it ends is what is counted.
  let generatorCpuS = 0;
  const looking = setInterval(() => {
    const now = cpuSeconds(pids);
    if (!Number.isNaN(now)) generatorCpuS = now;
  }, 50);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  }).finally(() => clearInterval(looking));
  return { ...readGoOutput(output, code), generatorCpuS };
}

/** Reads the tool's summary. */
export function readGoOutput(output: string, code: number | null): Omit<GoResult, "generatorCpuS"> {
  const number = (pattern: RegExp): number => {
    const found = pattern.exec(output)?.[1];
    if (code !== 0 || found === undefined || /^Error distribution/m.test(output)) {
      throw new Error(`etcd's benchmark tool ended with code ${code}:\n${output.slice(-2000)}`);
    }
    return Number(found);
  };
  return {
    ratePerS: number(/Requests\/sec:\s+([\d.]+)/),
    elapsedS: number(/Total:\s+([\d.]+) secs/),
    p50Ms: 1000 * number(/ 50% in ([\d.]+) secs/),
    p99Ms: 1000 * number(/ 99% in ([\d.]+) secs/),
  };
}
