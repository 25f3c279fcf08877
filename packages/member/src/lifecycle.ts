/**
 * The life of a member's parts: what begins in which order, what happens while they run, and how
 * they are closed.
 *
 *     begin: initial check -> transport -> links -> loop -> publication
 *     end:   loop stops -> callers are refused -> transport -> readers let go -> store -> log
 */
import type { raftpb } from "@quorate/proto";
import type { RequestKind } from "@quorate/store";
import { AppliedEntries } from "./apply/applied-entries.ts";
import { APPLY_LIMITS, Applier } from "./apply/applier.ts";
import type { MemberParts } from "./assemble.ts";
import type { LoopHandlers } from "./loop/loop-parts.ts";
import type { PeerPortTarget } from "./loop/peer-port.ts";
import type { Removal } from "./membership/index.ts";
import { nameMember } from "./metric-sources.ts";

export class Lifecycle {
  readonly #parts: MemberParts;
  #isTransportOpen = false;

  constructor(parts: MemberParts) {
    this.#parts = parts;
    const { store, watches, slices, space, snapshots, corruption, keeper, lifetime, deps } = parts;
    const { auth } = parts;
    watches.attach(store.current.mvcc);
    store.current.lessor.observer = keeper;
    store.follow({
      attach: (next) => {
        next.lessor.observer = keeper;
      },
    });
    auth.attach(store.current);
    store.follow({ attach: (next) => auth.attach(next) });
    store.follow({
      detach: () => Promise.all([watches.detach(), slices.detach()]),
      attach: (next) => {
        if (lifetime.hasEnded) return;
        slices.attach();
        corruption.alarmsChanged();
        if (!corruption.isHealing) watches.attach(next.mvcc);
      },
    });
    store.follow({
      detach: () => space.detach(),
      attach: () => {
        if (!lifetime.hasEnded) space.attach();
      },
    });
    store.follow({ detach: () => snapshots.close() });
    lifetime.listen((error) => {
      parts.loop.stop();
      parts.stopServing();
      this.#close({ flush: error === undefined })
        .catch(() => {})
        .then(() => deps.onEnd(error));
    });
  }

  /**
   * Begins to take part in the cluster. Closes everything where that does not work.
   * @param removal of a member that an earlier process has seen removed
   */
  async begin(removal: Removal | undefined): Promise<void> {
    try {
      await this.#begin(removal);
    } catch (error) {
      await this.#close({ flush: false });
      throw error;
    }
  }

  async #begin(removal: Removal | undefined): Promise<void> {
    const { config, metrics, ids, corruption, transport, configuration, loop } = this.#parts;
    const { port, flusher, space, slowDisk, cluster, publication, lifetime } = this.#parts;
    nameMember(metrics, ids.memberId, config);
    if (removal === undefined) await corruption.initialCheck();
    port.attach(this.#portTarget());
    this.#isTransportOpen = true;
    await transport.listen();
    configuration.connectPeers();
    flusher.start();
    const handlers = this.#loopHandlers();
    if (removal !== undefined) {
      // It answers its peers, and serves no clients.
      loop.start(handlers);
      cluster.departure.applied(removal);
      return;
    }
    space.start();
    corruption.start();
    loop.start(handlers);
    slowDisk.start();
    if (configuration.isAlone) loop.withRaft((raft) => raft.campaign());
    else if (config.initialElectionTickAdvance) this.#parts.firstElection.start();
    if (config.autoPromote) cluster.autoPromotion.start();
    publication.publish().catch(lifetime.end);
  }

  /** Ends the member in order: everything applied is on disk when it resolves. */
  async stop(): Promise<void> {
    if (!this.#parts.lifetime.stop()) return;
    this.#parts.stopServing();
    await this.#close({ flush: true });
  }

  async #close(options: { flush: boolean }): Promise<void> {
    const { loop, keeper, cluster, flusher, corruption, slowDisk, transport } = this.#parts;
    const { exchange, watches, slices, space, snapshots, store, wal } = this.#parts;
    loop.stop();
    keeper.steppedDown();
    this.#parts.auth.close();
    cluster.autoPromotion.stop();
    cluster.departure.stop();
    cluster.versions.stop();
    flusher.stop();
    corruption.stop();
    slowDisk.stop();
    this.#parts.firstElection.stop();
    if (this.#isTransportOpen) await transport.close();
    // The store to close below is the one that is there in the end.
    await exchange.over().catch(() => {});
    await Promise.all([watches.detach(), slices.drained()]);
    await space.stop();
    await snapshots.close();
    try {
      if (options.flush) loop.writeHardState();
      await store.current.close(options);
    } finally {
      await wal.close();
    }
  }

  // --- While it runs ---

  #portTarget(): PeerPortTarget {
    const { cluster, loop, peerMessages, snapshots } = this.#parts;
    return {
      ...cluster.links,
      received: (messages) => {
        cluster.departure.heard(messages);
        loop.received(peerMessages.admit(messages));
      },
      snapshotReceived: (stream) => snapshots.receive(stream),
      unreachable: (id) => loop.withRaft((raft) => raft.reportUnreachable(id)),
      snapshotSent: (id, taken) => snapshots.sent(id, taken),
    };
  }

  #loopHandlers(): LoopHandlers {
    const { snapshotInstall, snapshots, peerMessages } = this.#parts;
    return {
      applier: this.#applier(),
      saveSnapshot: (snapshot) => snapshotInstall.save(snapshot),
      install: (snapshot) => snapshotInstall.install(snapshot),
      sendSnapshot: (message) => snapshots.send(message),
      leaderChanged: () => this.#leaderChanged(),
      refused: (message, reason) => peerMessages.refuse(message, reason),
    };
  }

  #applier(): Applier {
    const { clock, deps, faults, store, proposals, metrics, logger, config } = this.#parts;
    const isAwaited = (requestId: bigint) => proposals.applies(requestId);
    const applied = new AppliedEntries({
      metrics,
      logger,
      warningMs: config.warningApplyDurationMs,
      malformed: this.#parts.malformed,
      settle: (requestId, result) => proposals.settle(requestId, result),
      succeeded: (kind) => this.#succeeded(kind),
    });
    return new Applier({
      clock,
      faults,
      limits: deps.applyLimits ?? APPLY_LIMITS,
      canApply: () => !store.current.isFull,
      begin: (entry) => store.current.begin(entry, isAwaited),
      applied: (...outcome) => applied.applied(...outcome),
      applyConfChange: (entry) => this.#applyConfChange(entry),
      sliceEnded: (index, bytes) => this.#sliceEnded(index, bytes),
    });
  }

  /** A request of this kind was applied without an error. */
  #succeeded(kind: RequestKind): void {
    const { space, publication, corruption } = this.#parts;
    if (kind === "compaction") space.compactionScheduled();
    else if (kind === "clusterVersionSet") publication.versionMayBeKnown();
    if (kind !== "alarm") return;
    space.alarmsChanged();
    corruption.alarmsChanged();
  }

  #sliceEnded(index: number, bytes: number): void {
    const { space, snapshots, store, flusher } = this.#parts;
    space.keeper.applied();
    snapshots.applied(index, bytes);
    if (store.current.isFlushDue) flusher.flush();
  }

  #applyConfChange(entry: raftpb.Entry): void {
    const { configuration, leader, clock, lifetime, loop } = this.#parts;
    configuration.apply(entry);
    if (leader.leader !== 0n || !configuration.isAlone) return;
    clock.endOfTurn(() => {
      if (!lifetime.hasEnded) loop.withRaft((raft) => raft.campaign());
    });
  }

  #leaderChanged(): void {
    const { keeper, leader, raft, metrics, clock, cluster } = this.#parts;
    if (leader.isLeader) keeper.leads(raft.term);
    else keeper.steppedDown();
    if (leader.leader === 0n) return;
    metrics.leaderChanges.add();
    leader.electedMs = clock.monotonicMs();
    if (leader.isLeader) cluster.versions.lead();
  }
}
