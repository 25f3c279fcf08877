/**
 * A cluster of real members under hostile requests. In rounds: calls of every method, messages of
 * every type in members' names, the peer port's endpoints, and restarts; then it is quiet, and the
 * members are compared.
 *
 * What is a failure: a member that ends by itself, members whose hashes differ, a member that takes
 * more memory than it may, a cluster that does not serve any more once it is left alone.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@grpc/grpc-js";
import {
  AlarmRequest_AlarmAction,
  fromLatin1,
  KVService,
  MaintenanceService,
} from "@quorate/proto";
import { CallError, openChannel, TestClient } from "../support/client.ts";
import type { TestCluster } from "../support/cluster.ts";
import type { TestMember } from "../support/member.ts";
import { SeededRandom } from "../support/random.ts";
import { AwakeClock } from "./awake-clock.ts";
import { METHODS, rawCall } from "./calls.ts";
import { Liar, type Scene } from "./lies.ts";
import { MessageMaker } from "./messages.ts";
import type { FuzzOptions } from "./options.ts";
import { type PeerIdentity, PeerStream, sendSnapshot } from "./peer.ts";
import { residentMib } from "./resident.ts";

/** Something that must not be. */
export class Found extends Error {}

const CALL_LIMIT_MS = 4000;
const COMPARE_LIMIT_MS = 60_000;
/**
 * Methods after whose valid requests the cluster is another one. Only spoilt requests are sent to
 * them, which are refused.
 */
const SPOILT_ONLY = /Cluster\/Member(?:Add|Remove|Update|Promote)|Maintenance\/(?:Alarm|Downgrade)/;
const PEER_PATHS = [
  "/leases",
  "/leases/internal",
  "/members/hashkv",
  "/members",
  "/members/promote/1",
  "/version",
  "/members/store-to/1",
];

/** What was done. `residentMib` is the most that any member had. */
export type Counts = Record<
  "calls" | "peerMessages" | "peerRequests" | "restarts" | "rounds" | "residentMib",
  number
>;

/** What a member says of itself and the cluster. */
interface Standing {
  readonly id: bigint;
  readonly clusterId: bigint;
  readonly term: number;
  readonly lastIndex: number;
}

export class Fuzzer {
  readonly counts: Counts = {
    calls: 0,
    peerMessages: 0,
    peerRequests: 0,
    restarts: 0,
    rounds: 0,
    residentMib: 0,
  };
  readonly #clock = new AwakeClock();
  readonly #options: FuzzOptions;
  readonly #cluster: TestCluster;
  readonly #random: SeededRandom;
  readonly #maker: MessageMaker;
  readonly #liar: Liar;
  /** Members that are being stopped, or are stopped, by this fuzzer. */
  readonly #stopped = new Set<TestMember>();
  #standing: Standing[] = [];
  #endMs = 0;
  #roundEndMs = 0;

  constructor(options: FuzzOptions, cluster: TestCluster) {
    this.#options = options;
    this.#cluster = cluster;
    this.#random = new SeededRandom(options.seed);
    this.#maker = new MessageMaker(this.#random, {
      keys: ["", "a", "b", "k/1", "k/2", "\xff"],
      ids: [0n, 1n, 2n, 7n, 99n],
    });
    this.#liar = new Liar(this.#random, this.#maker);
  }

  /**
   * Runs for the time in the options. Throws Found. @param report called with lines about the
   * progress
   */
  async run(report: (line: string) => void): Promise<void> {
    const { minutes, logEveryMs } = this.#options;
    const startMs = this.#clock.nowMs;
    this.#endMs = startMs + minutes * 60_000;
    let loggedMs = startMs;
    this.#clock.start();
    while (this.#clock.nowMs < this.#endMs) {
      await this.#round();
      if (this.#clock.nowMs - loggedMs < logEveryMs && this.#clock.nowMs < this.#endMs) continue;
      loggedMs = this.#clock.nowMs;
      report(`${((loggedMs - startMs) / 60_000).toFixed(1)} min: ${JSON.stringify(this.counts)}`);
    }
  }

  get #isOver(): boolean {
    return this.#clock.nowMs >= this.#roundEndMs;
  }

  async #round(): Promise<void> {
    const { roundMs, callers, peerStreams } = this.#options;
    await this.#look();
    this.#roundEndMs = Math.min(this.#clock.nowMs + roundMs, this.#endMs);
    const jobs = [
      ...Array.from({ length: callers }, () => this.#call()),
      ...Array.from({ length: peerStreams }, () => this.#speakAsPeer()),
      this.#askPeerPort(),
      this.#restart(),
      this.#watch(),
    ];
    await Promise.all(jobs);
    await this.#compare();
    this.counts.rounds++;
  }

  // --- Requests ---

  async #call(): Promise<void> {
    let client: Client | undefined;
    for (let i = 0; !this.#isOver; i++) {
      if (i % 50 === 0) {
        client?.close();
        client = openChannel(
          this.#random.pick(this.#cluster.members).clientAddress,
          this.#cluster.identity,
        );
      }
      const method = this.#random.pick(METHODS);
      const mayBeValid = !SPOILT_ONLY.test(method.path) && this.#random.oneIn(3);
      const body = () =>
        mayBeValid
          ? this.#maker.valid(method.requestTypeName)
          : this.#spoilt(method.requestTypeName, method.path);
      const bodies = Array.from(
        { length: method.requestStream ? 1 + this.#random.below(4) : 1 },
        body,
      );
      await rawCall(client!, method, bodies, method.waits ? 300 : CALL_LIMIT_MS);
      this.counts.calls++;
    }
    client?.close();
  }

  /**
   * A malformed request; for methods that must not be carried out, one that is cut and so never is.
   */
  #spoilt(typeName: string, path: string): Uint8Array {
    const bytes = this.#maker.malformed(typeName);
    return SPOILT_ONLY.test(path) ? Uint8Array.from([...bytes, 0x08]) : bytes;
  }

  /** From one member to another, as far as they are known. */
  #scene(): { scene: Scene; identity: PeerIdentity; target: TestMember } | undefined {
    const at = this.#random.below(this.#standing.length);
    const to = this.#standing[at];
    const from =
      this.#standing[
        (at + 1 + this.#random.below(this.#standing.length - 1)) % this.#standing.length
      ];
    const target = this.#cluster.members[at];
    const { certs } = this.#cluster;
    const read = (path: string): string => readFileSync(path, "utf8");
    const tls =
      certs === undefined
        ? {}
        : { tls: { ca: read(certs.peerCa), cert: read(certs.peer), key: read(certs.peerKey) } };
    const scene = { from: from.id, to: to.id, term: to.term, lastIndex: to.lastIndex };
    return {
      scene,
      identity: { from: from.id, to: to.id, clusterId: to.clusterId, ...tls },
      target,
    };
  }

  async #speakAsPeer(): Promise<void> {
    while (!this.#isOver) {
      const drawn = this.#scene()!;
      const { scene, identity, target } = drawn;
      const stream = PeerStream.open(
        target.options.peerUrl,
        identity,
        this.#random.oneIn(2) ? "urgent" : "bulk",
      );
      for (let i = this.#random.below(60); i > 0 && !this.#isOver; i--) {
        const bytes = this.#liar.message(scene);
        const sent = this.#random.oneIn(40) ? stream.sendRaw(bytes) : stream.send(bytes);
        if (!sent) break;
        this.counts.peerMessages++;
        await delay(this.#random.below(6));
      }
      stream.close();
      await delay(5);
    }
  }

  async #askPeerPort(): Promise<void> {
    const { certs } = this.#cluster;
    while (!this.#isOver) {
      const { identity, target } = this.#scene()!;
      const body = this.#maker.malformed("leasepb.LeaseInternalRequest");
      if (certs !== undefined || this.#random.oneIn(4)) {
        await sendSnapshot(target.options.peerUrl, identity, this.#snapshot(identity), 1500);
      } else {
        const path = this.#random.pick(PEER_PATHS);
        const init = this.#random.oneIn(4) ? {} : { method: "POST", body: Buffer.from(body) };
        const answer = await fetch(target.options.peerUrl + path, {
          ...init,
          signal: AbortSignal.timeout(2000),
        }).catch(() => undefined);
        await answer?.arrayBuffer().catch(() => {});
      }
      this.counts.peerRequests++;
      await delay(20);
    }
  }

  #snapshot(identity: PeerIdentity): Uint8Array {
    const message = this.#maker.malformed("raftpb.Message");
    const head = Buffer.alloc(4);
    head.writeUInt32BE(this.#random.oneIn(5) ? 0xffff_ffff : message.length);
    const rest = this.#maker.malformed("raftpb.Snapshot");
    return Buffer.concat([
      head,
      message,
      Buffer.from([0, 0, 0, rest.length & 0xff]),
      rest,
      Buffer.alloc(Number(identity.to & 7n)),
    ]);
  }

  // --- Restarts ---

  async #restart(): Promise<void> {
    while (!this.#isOver) {
      await delay(2000 + this.#random.below(4000));
      if (this.#isOver) return;
      const member = this.#random.pick(this.#cluster.members);
      this.#stopped.add(member);
      if (this.#random.oneIn(2)) await member.kill();
      else await this.#clock.retried(() => member.terminate());
      await delay(this.#random.below(1500));
      member.start();
      this.#stopped.delete(member);
      this.counts.restarts++;
    }
  }

  // --- Checks ---

  /** Looks all the time whether a member has ended, or grows. */
  async #watch(): Promise<void> {
    while (!this.#isOver) {
      this.#assertAlive();
      await delay(200);
    }
  }

  #assertAlive(): void {
    for (const member of this.#cluster.members) {
      if (this.#stopped.has(member)) continue;
      if (!member.isRunning)
        throw new Found(`${member.name} has ended by itself\n${member.logTail(6)}`);
      const mib = residentMib(member.pid!);
      this.counts.residentMib = Math.max(this.counts.residentMib, mib);
      if (mib > this.#options.maxResidentMib)
        throw new Found(`${member.name} has ${mib} MiB resident`);
    }
  }

  /** As `#each`; calls that failed because this process stood still meanwhile are made again. */
  #eachAwake<T>(ask: (client: TestClient, member: TestMember) => Promise<T>): Promise<T[]> {
    return this.#clock.retried(() => this.#each(ask));
  }

  async #each<T>(ask: (client: TestClient, member: TestMember) => Promise<T>): Promise<T[]> {
    return Promise.all(
      this.#cluster.members.map(async (member) => {
        const client = new TestClient(member.clientAddress, this.#cluster.identity);
        try {
          return await ask(client, member);
        } finally {
          client.close();
        }
      }),
    );
  }

  /** Learns who the members are, and how far they have come. */
  async #look(): Promise<void> {
    await this.#serves();
    this.#standing = await this.#eachAwake(async (client) => {
      const { header, raftTerm, raftIndex } = await client.call(
        MaintenanceService.methods.Status,
        {},
        COMPARE_LIMIT_MS,
      );
      return {
        id: header!.memberId,
        clusterId: header!.clusterId,
        term: raftTerm,
        lastIndex: raftIndex,
      };
    });
  }

  /** Every member serves a write again, and no alarm is left. */
  async #serves(): Promise<void> {
    const { healMs } = this.#options;
    const endMs = this.#clock.nowMs + healMs;
    for (;;) {
      this.#assertAlive();
      try {
        await this.#each(async (client) => {
          const { alarms } = await client.call(
            MaintenanceService.methods.Alarm,
            { action: AlarmRequest_AlarmAction.GET },
            5000,
          );
          for (const { memberID, alarm } of alarms) {
            await client.call(
              MaintenanceService.methods.Alarm,
              { action: AlarmRequest_AlarmAction.DEACTIVATE, memberID, alarm },
              5000,
            );
          }
          await client.call(
            KVService.methods.Put,
            { key: fromLatin1("served"), value: fromLatin1("yes") },
            5000,
          );
        });
        return;
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        if (this.#clock.nowMs > endMs)
          throw new Found(
            `the cluster does not serve ${healMs} ms after it was left alone: ${error.message}`,
          );
        await delay(200);
      }
    }
  }

  /** All members have the same history. Leases end meanwhile, so it is compared at one revision. */
  async #compare(): Promise<void> {
    await this.#serves();
    for (let attempt = 1; ; attempt++) {
      const revisions = await this.#eachAwake(async (client) => {
        const { header } = await client.call(
          KVService.methods.Range,
          { key: fromLatin1("served") },
          COMPARE_LIMIT_MS,
        );
        return header!.revision;
      });
      const revision = Math.min(...revisions);
      const hashes = await this.#eachAwake(async (client, { name }) => {
        const { hash, compactRevision } = await client.call(
          MaintenanceService.methods.HashKV,
          { revision },
          COMPARE_LIMIT_MS,
        );
        return { name, hash, compactRevision };
      });
      const compacted = new Set(hashes.map(({ compactRevision }) => compactRevision));
      if (new Set(hashes.map(({ hash }) => hash)).size === 1) return;
      // A compaction that was asked for at the end reaches the members one after the other.
      if (compacted.size === 1 || attempt === 20)
        throw new Found(`members differ at revision ${revision}: ${JSON.stringify(hashes)}`);
      await delay(250);
    }
  }
}
