/**
 * A cluster restored from a snapshot, beside the one that the snapshot is from: three machines
 * whose disks are made as quorateutl makes them, and lose power before anything is started. It
 * begins with the state of the snapshot, and goes on from it.
 */

import { makeMember, newMember } from "@quorate/backup";
import type { Clock } from "@quorate/host";
import { AlarmRequest, AlarmRequest_AlarmAction, MaintenanceService } from "@quorate/proto";
import type { ServerConfig } from "@quorate/server";
import { importEtcdFile } from "@quorate/store";
import { decodeAnswer, encodeRequest } from "./base/codec.ts";
import type { ModelRequest } from "./base/model.ts";
import type { SimOptions } from "./base/options.ts";
import type { Archive } from "./check/archives.ts";
import { violate } from "./check/safety.ts";
import { Cluster, type ClusterDeps } from "./cluster.ts";
import type { Exchanges } from "./exchanges.ts";
import type { Node } from "./node.ts";

const MEMBERS = 3;
const SNAPSHOT_PATH = "/snapshot.db";
const CALL_TIMEOUT_MS = 5000;
const RETRY_MS = 100;
const NEWEST = { serializable: false, atRevision: 0 };

export interface RestorationDeps extends ClusterDeps {
  readonly network: Exchanges;
  /** The flags of a member. @param cluster its --initial-cluster */
  configOf(name: string, url: string, cluster: string): Promise<ServerConfig>;
}

export class Restoration {
  readonly #archive: Archive;
  readonly #deps: RestorationDeps;
  readonly cluster: Cluster;
  #nodes: Node[] = [];

  constructor(options: SimOptions, archive: Archive, deps: RestorationDeps) {
    this.#archive = archive;
    this.#deps = deps;
    this.cluster = new Cluster(options, deps);
    this.cluster.leaseCheck.begin(archive.leases);
    this.cluster.network.links.faulty = false;
  }

  /** Restores, starts and looks. Rejects with a Violation. */
  async run(): Promise<void> {
    const { configOf, scheduler } = this.#deps;
    const names = Array.from({ length: MEMBERS }, (_, i) => `r${i}`);
    const urlOf = (i: number) => `http://127.0.0.1:${22_380 + i}`;
    const cluster = names.map((name, i) => `${name}=${urlOf(i)}`).join(",");
    const { index, state, compactRevision, alarms, users } = this.#archive;
    // The new log holds its members alone.
    this.cluster.safety.begin({ index: MEMBERS, state, compactRevision, alarms, users });
    this.#deps.story.record(
      "world",
      `restores a cluster from the snapshot at ${index}, revision ${state.revision}`,
    );
    for (const [i, name] of names.entries()) {
      const node = this.cluster.node(name, await configOf(name, urlOf(i), cluster));
      this.#nodes.push(node);
      await node.prepareDisk((machine, config) => this.#make(machine, config));
    }
    for (const node of this.#nodes) node.start();
    while (this.#nodes.some(({ member }) => member === undefined || member.leader === 0n))
      await scheduler.delay(RETRY_MS);
    await this.#endAlarms();
    for (const node of this.#nodes) await this.#use(node);
    for (const node of this.#nodes) this.#compare(node);
    for (const { process } of this.#nodes) process?.end();
  }

  async #make(
    { disk, keyspaces, clock }: Parameters<Parameters<Node["prepareDisk"]>[0]>[0],
    config: ServerConfig,
  ): Promise<void> {
    const urls = new Map(
      [...config.initialCluster].map(([name, list]) => [name, list.map(({ text }) => text)]),
    );
    const target = newMember(
      config.name,
      urls,
      config.initialClusterToken,
      config.dataDir,
      config.walDir,
    );
    disk.replace(SNAPSHOT_PATH, this.#archive.bytes);
    const fill = (storeDir: string) =>
      importEtcdFile({ disk, keyspaces }, SNAPSHOT_PATH, storeDir, target.cluster);
    await makeMember(target, fill, { disk, clock: clock as Clock });
  }

  /** Those of the cluster that the snapshot is from. */
  async #endAlarms(): Promise<void> {
    for (const { memberId, type } of this.#archive.alarms) {
      const end = AlarmRequest.encode({
        action: AlarmRequest_AlarmAction.DEACTIVATE,
        memberID: memberId,
        alarm: type,
      });
      await this.#ask(this.#nodes[0], MaintenanceService.methods.Alarm.path, end);
    }
  }

  async #ask(node: Node, path: string, bytes: Uint8Array): Promise<Uint8Array | undefined> {
    for (;;) {
      const reply = await this.#deps.network.exchange(node, path, bytes, CALL_TIMEOUT_MS);
      if (reply.bytes !== undefined) return reply.bytes;
      // As full as it was.
      if (/space exceeded/.test(reply.error ?? "")) return undefined;
      this.#deps.story.record("world", `the restored ${node.name} says ${reply.error}`);
      await this.#deps.scheduler.delay(RETRY_MS);
    }
  }

  /**
   * A write and a read through a member; what it answers is compared where it is applied, and here.
   */
  async #use(node: Node): Promise<void> {
    const ask = (request: ModelRequest) => {
      const { path, bytes } = encodeRequest(request, NEWEST);
      return this.#ask(node, path, bytes);
    };
    await ask({ kind: "put", key: "restored", value: node.name });
    const everything = { kind: "range", key: "\0", end: "\xff" } as const;
    const bytes = await ask(everything);
    if (bytes === undefined) return;
    const { revision, answers } = decodeAnswer("range", bytes);
    const expected = this.cluster.safety.stateAt(revision)?.range(everything);
    const [answer] = answers;
    const found = answer.kind === "range" ? answer.kvs : [];
    if (JSON.stringify(found) !== JSON.stringify(expected)) {
      violate(
        "ARCHIVE-2",
        `the restored ${node.name} has ${JSON.stringify(found)} at ${revision}, not ${JSON.stringify(expected)}`,
      );
    }
  }

  #compare({ name, member }: Node): void {
    if (member === undefined) violate("ARCHIVE-2", `the restored ${name} has ended`);
    const leases = [...member.store.lessor.all()].map(({ id }) => `${id}`).sort();
    // One may have ended since, and one member know of it before the others.
    const unknown = leases.filter((id) => !this.#archive.leases.has(id));
    const lost = this.cluster.leaseCheck.existing.filter((id) => !leases.includes(id));
    if (unknown.length + lost.length > 0)
      violate(
        "ARCHIVE-2",
        `the restored ${name} has the leases ${leases}, unlike ${this.cluster.leaseCheck.existing}`,
      );
  }
}
