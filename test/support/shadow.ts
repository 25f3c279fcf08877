/** A shadow as a process, and random load on the cluster beside it. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ClientOptions } from "@quorate/client";
import { connect } from "@quorate/client/node";
import type { ShadowReport } from "@quorate/shadow";
import { tlsFlags } from "../../scripts/certs.ts";
import { endsWithUs } from "./children.ts";
import type { TestCluster } from "./cluster.ts";
import { memberUnderTest } from "./executables.ts";
import { freePorts } from "./ports.ts";
import type { SeededRandom } from "./random.ts";
import { until } from "./until.ts";

/** What a load has done. */
export interface LoadCounts {
  writes: number;
  failed: number;
  compactions: number;
}

export interface LoadOptions {
  /** Writers that go on one after the other. */
  readonly writers: number;
  /** Between two writes of a writer. */
  readonly pauseMs: number;
  readonly compactEveryMs: number;
  /** Revisions that a compaction leaves. */
  readonly keptRevisions: number;
}

/**
 * Puts, deletions and leases on keys below "load/", and compactions, until the signal.
 * Writes that fail, as while there is no leader, are counted.
 * @param target how to connect
 */
export async function randomLoad(
  target: ClientOptions & { readonly endpoints: readonly string[] },
  random: SeededRandom,
  stop: AbortSignal,
  options: LoadOptions,
): Promise<LoadCounts> {
  const client = connect({ ...target, timeoutMs: 3000 });
  const counts: LoadCounts = { writes: 0, failed: 0, compactions: 0 };
  let revision = 0;
  let compactedMs = performance.now();
  const write = async (): Promise<void> => {
    const key = `load/${random.below(500)}`;
    const value = "v".repeat(random.below(200));
    const dice = random.below(20);
    if (dice === 0) await client.delete(key);
    else if (dice === 1) await client.delete("load/1", { prefix: true });
    else if (dice === 2) {
      const lease = await client.leases.grant(60 + random.below(600));
      await client.put(key, value, { lease: lease.ID });
    } else revision = (await client.put(key, value)).header.revision;
    counts.writes++;
    if (performance.now() - compactedMs < options.compactEveryMs) return;
    compactedMs = performance.now();
    await client.compact(Math.max(1, revision - options.keptRevisions));
    counts.compactions++;
  };
  const writer = async (): Promise<void> => {
    while (!stop.aborted) {
      await write().catch(() => void counts.failed++);
      await delay(options.pauseMs);
    }
  };
  await Promise.all(Array.from({ length: options.writers }, writer));
  client.close();
  return counts;
}

/** A shadow as a process, with its report. */
export class TestShadow {
  readonly dir: string;
  readonly #cluster: TestCluster;
  readonly #flags: string[];
  #child: ChildProcess | undefined;
  #exit: Promise<number | null> = Promise.resolve(null);
  output = "";

  private constructor(
    cluster: TestCluster,
    name: string,
    ports: readonly number[],
    flags: readonly string[],
  ) {
    this.#cluster = cluster;
    this.dir = join(cluster.dir, name);
    const [peer, metrics] = ports;
    const scheme = cluster.certs === undefined ? "http" : "https";
    const peerUrl = `${scheme}://127.0.0.1:${peer}`;
    this.#flags = [
      `--name=${name}`,
      `--data-dir=${this.dir}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--listen-metrics-urls=http://127.0.0.1:${metrics}`,
      `--report=${this.dir}.json`,
      "--every=2s",
      ...flags,
    ];
    const { certs } = cluster;
    if (certs !== undefined)
      this.#flags.push(
        `--cacert=${certs.ca}`,
        `--cert=${certs.client}`,
        `--key=${certs.clientKey}`,
        ...tlsFlags(certs).filter((flag) => flag.startsWith("--peer")),
      );
    this.metricsUrl = `http://127.0.0.1:${metrics}`;
  }

  readonly metricsUrl: string;

  static async of(cluster: TestCluster, name: string, ...flags: string[]): Promise<TestShadow> {
    return new TestShadow(cluster, name, await freePorts(2), flags);
  }

  #command(more: readonly string[]): string[] {
    const peers = this.#cluster.members.map(({ options }) => options.peerUrl);
    return [...memberUnderTest.command, "shadow", `--join=${peers}`, ...this.#flags, ...more];
  }

  start(...more: string[]): void {
    const [command, ...args] = this.#command(more);
    const child = spawn(command!, args, { stdio: ["ignore", "pipe", "pipe"] });
    endsWithUs(child);
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (bytes) => (this.output += String(bytes)));
    this.#child = child;
    this.#exit = new Promise((resolve) => child.once("exit", resolve));
  }

  /** Runs the command to its end; returns its exit code and what it printed. */
  runs(...more: string[]): { readonly code: number | null; readonly text: string } {
    const [command, ...args] = this.#command(more);
    const { status, stdout, stderr } = spawnSync(command!, args, { encoding: "utf8" });
    return { code: status, text: stdout + stderr };
  }

  end(signal: "SIGTERM" | "SIGKILL"): Promise<number | null> {
    this.#child?.kill(signal);
    return this.#exit;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  report(): ShadowReport | undefined {
    const path = `${this.dir}.json`;
    return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as ShadowReport) : undefined;
  }

  /** Waits for a report. */
  async reports(what: string, is: (report: ShadowReport) => boolean): Promise<ShadowReport> {
    const seen = until(`the shadow reports ${what}`, () => {
      assert.equal(this.#child?.exitCode, null, "the shadow runs");
      const report = this.report();
      return report !== undefined && is(report);
    });
    await seen.catch((error: Error) => {
      const { message } = error;
      throw new Error(`${message}\n${JSON.stringify(this.report())}\n${this.output.slice(-4000)}`);
    });
    return this.report()!;
  }
}
