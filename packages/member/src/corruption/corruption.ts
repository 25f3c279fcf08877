/**
 * Finding out that members differ, and mending it: the checker, the healer, and what the peer port
 * answers for both.
 */
import type { Clock, HttpHandler, Logger } from "@quorate/host";
import { type AlarmRequest, errorOf, idToHex } from "@quorate/proto";
import type { Applied } from "@quorate/store";
import type { MemberConfig } from "../config/member-config.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { WatchHub } from "../watch/index.ts";
import { CorruptionChecker } from "./checker.ts";
import { Healer } from "./healer.ts";
import { HASH_PATH, hashEndpoint } from "./peer-hash.ts";
import {
  type RefetchParts,
  refetchStore,
  STORE_TO_PATH,
  type StoreReceiver,
  storeToEndpoint,
} from "./refetch.ts";

/** The sending end, for another member that has requested the store of this one. */
export interface StoreSender {
  sendTo(id: bigint): void;
}

/** The member, as this directory needs it. */
export interface CorruptionHost {
  readonly memberId: bigint;
  readonly clusterId: bigint;
  readonly config: MemberConfig;
  readonly clock: Clock;
  readonly store: StoreRef;
  readonly leader: { readonly leader: bigint; readonly isLeader: boolean };
  readonly loop: { readonly appliedIndex: number };
  readonly watches: WatchHub;
  /** Resolves when the store may be read at all. */
  readable(): Promise<void>;
  linearizable(): Promise<void>;
  handOver(): Promise<void>;
}

export interface CorruptionParts
  extends Pick<
    RefetchParts,
    "call" | "hasEnded" | "entriesAfter" | "standStill" | "exchange" | "replayConfChange"
  > {
  readonly host: CorruptionHost;
  readonly snapshots: StoreReceiver & StoreSender;
  readonly propose: (request: AlarmRequest) => Promise<Applied>;
  readonly logger: Logger;
}

export class Corruption {
  readonly #parts: CorruptionParts;
  readonly #checker: CorruptionChecker;
  /** Undefined without --self-heal. */
  readonly #healer: Healer | undefined;

  constructor(parts: CorruptionParts) {
    this.#parts = parts;
    const { host, logger, hasEnded, call, propose } = parts;
    const { memberId, config, clock } = host;
    const { store } = host;
    const isLeader = () => host.leader.isLeader;
    this.#checker = new CorruptionChecker(
      {
        memberId,
        everyMs: config.corruptCheckMs,
        afterCompactionMs:
          config.featureGates.get("CompactHashCheck") === true
            ? config.compactHashCheckMs
            : undefined,
      },
      { store, isLeader, linearizable: () => host.linearizable(), propose, call, clock, logger },
    );
    if (!config.selfHeal) return;
    this.#healer = new Healer({
      memberId,
      store,
      isLeader,
      handOver: () => host.handOver(),
      standing: (counts) => this.#checker.standing(counts),
      isLeaderRight: () => this.#checker.isVouchedFor(host.leader.leader),
      propose,
      hasEnded,
      clock,
      logger,
      unserved: () => host.watches.detach(),
      replaceStore: async (stopped) => {
        await refetchStore({
          ...parts,
          memberId,
          clock,
          stopped,
          appliedIndex: () => host.loop.appliedIndex,
          leaderUrls: () => store.current.membership.member(host.leader.leader)?.peerUrls ?? [],
        });
      },
      // A store that is being exchanged at this moment is not one to attach to.
      served: () =>
        void host.readable().then(
          () => {
            if (!hasEnded() && !this.isHealing) host.watches.attach(host.store.current.mvcc);
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
    const { host, logger } = this.#parts;
    const { config, memberId } = host;
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
    const { host, snapshots } = this.#parts;
    const mvcc = async () => {
      await host.readable();
      // A copy of another's store is no witness for that.
      if (this.#healer?.isUnsure === true) throw errorOf("Corrupt");
      return host.store.current.mvcc;
    };
    const isMember = (id: bigint) => host.store.current.membership.member(id) !== undefined;
    return new Map<string, HttpHandler>([
      [HASH_PATH, hashEndpoint(host.clusterId, mvcc)],
      [
        STORE_TO_PATH,
        storeToEndpoint(
          () => host.leader.isLeader,
          isMember,
          (id) => snapshots.sendTo(id),
        ),
      ],
    ]);
  }
}
