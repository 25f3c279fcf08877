/**
 * Finding out that members differ, and mending it: the checker, the healer, and what the peer port
 * answers for both.
 */
import type { HttpHandler, Logger } from "@quorate/host";
import { AlarmRequest, errorOf, idToHex } from "@quorate/proto";
import type { SnapshotSender } from "../apply/snapshot-sender.ts";
import type { MemberConfig } from "../config/member-config.ts";
import type { Proposals } from "../loop/proposals.ts";
import type { Reads } from "../loop/reads.ts";
import type { Leadership } from "../membership/index.ts";
import type { WatchHub } from "../watch/index.ts";
import { CorruptionChecker } from "./checker.ts";
import { Healer } from "./healer.ts";
import { HASH_PATH, hashEndpoint } from "./peer-hash.ts";
import { type RefetchParts, refetchStore, STORE_TO_PATH, storeToEndpoint } from "./refetch.ts";

export interface CorruptionParts extends RefetchParts {
  readonly clusterId: bigint;
  readonly config: MemberConfig;
  readonly watches: WatchHub;
  readonly sender: SnapshotSender;
  readonly proposals: Proposals;
  readonly reads: Reads;
  readonly leadership: Leadership;
  readonly logger: Logger;
}

export class Corruption {
  readonly #parts: CorruptionParts;
  readonly #checker: CorruptionChecker;
  /** Undefined without --self-heal. */
  readonly #healer: Healer | undefined;

  constructor(parts: CorruptionParts) {
    this.#parts = parts;
    const { memberId, config, clock, store, leader, lifetime, reads, watches } = parts;
    const { logger, call } = parts;
    const propose = (request: AlarmRequest) =>
      parts.proposals.propose("alarm", AlarmRequest.encode(request));
    const isLeader = () => leader.isLeader;
    this.#checker = new CorruptionChecker(
      {
        memberId,
        everyMs: config.corruptCheckMs,
        afterCompactionMs:
          config.featureGates.get("CompactHashCheck") === true
            ? config.compactHashCheckMs
            : undefined,
      },
      { store, isLeader, linearizable: () => reads.wait(), propose, call, clock, logger },
    );
    // A leader of etcd gives its store to no member that is not behind.
    if (!config.selfHeal || store.current.followsEtcd) return;
    this.#healer = new Healer({
      memberId,
      store,
      isLeader,
      handOver: () => parts.leadership.handOver(),
      standing: (counts) => this.#checker.standing(counts),
      isLeaderRight: () => this.#checker.isVouchedFor(leader.leader),
      propose,
      hasEnded: () => lifetime.hasEnded,
      clock,
      logger,
      unserved: () => watches.feed.detach(),
      replaceStore: (stopped) => refetchStore(parts, stopped),
      // A store that is being exchanged at this moment is not one to attach to.
      served: () =>
        void parts.exchange.over().then(
          () => {
            if (!lifetime.hasEnded && !this.isHealing) watches.feed.attach(store.current.mvcc);
          },
          () => {},
        ),
    });
  }

  /**
   * Compares this member with the others before it takes part.
   * @throws Error where they differ, unless it may mend itself: the alarm is raised for it then,
   * once it takes part
   */
  async initialCheck(): Promise<void> {
    const { logger, config, memberId } = this.#parts;
    if (config.featureGates.get("InitialCorruptCheck") !== true) return;
    logger.info("starting initial corruption check", { "local-member-id": idToHex(memberId) });
    if ((await this.#checker.differing()) === 0) {
      logger.info("initial corruption checking passed; no corruption", {
        "local-member-id": idToHex(memberId),
      });
      return;
    }
    if (this.#healer === undefined)
      throw new Error(`${idToHex(memberId)} found data inconsistency with peers`);
    this.#healer.accuse();
  }

  start(): void {
    this.#checker.start();
    this.#healer?.start();
  }

  /** An alarm was raised or ended, or another store took the place of the one before. */
  alarmsChanged(): void {
    this.#healer?.look();
  }

  stop(): void {
    this.#checker.stop();
    this.#healer?.stop();
  }

  /** True while what this member has must not be read, because it differs from the others. */
  get isHealing(): boolean {
    return this.#healer?.isHealing ?? false;
  }

  /** Resolves when what this member has may be read. */
  async healed(): Promise<void> {
    await this.#healer?.healed();
  }

  /** What the peer port answers to other members, by path. */
  peerEndpoints(): ReadonlyMap<string, HttpHandler> {
    const { clusterId, exchange, store, leader, sender } = this.#parts;
    const mvcc = async () => {
      await exchange.over();
      // A copy of another's store is no witness for that.
      if (this.#healer?.isUnsure === true) throw errorOf("Corrupt");
      return store.current.mvcc;
    };
    const isMember = (id: bigint) => store.current.membership.member(id) !== undefined;
    return new Map<string, HttpHandler>([
      [HASH_PATH, hashEndpoint(clusterId, mvcc)],
      [
        STORE_TO_PATH,
        storeToEndpoint(
          () => leader.isLeader,
          isMember,
          (id) => sender.sendTo(id),
        ),
      ],
    ]);
  }
}
