/**
 * The life of a member's parts: what begins in which order, what happens while they run, and how
 * they are closed.
 *
 *     begin: initial check -> transport -> links -> loop -> publication
 *     end:   loop stops -> callers are refused -> transport -> readers let go -> store -> log
 */
import type { MemberParts } from "./assemble.ts";
import type { Removal } from "./membership/index.ts";
import { nameMember } from "./metric-sources.ts";

export class Lifecycle {
  readonly #parts: MemberParts;
  #isTransportOpen = false;

  constructor(parts: MemberParts) {
    this.#parts = parts;
    const { store, watches, slices, space, sent, corruption, keeper, lifetime, deps } = parts;
    const { auth } = parts;
    watches.feed.attach(store.current.mvcc);
    store.current.lessor.observer = keeper;
    store.follow({
      attach: (next) => {
        next.lessor.observer = keeper;
      },
    });
    auth.attach(store.current);
    store.follow({ attach: (next) => auth.attach(next) });
    store.follow({
      detach: () => Promise.all([watches.feed.detach(), slices.detach()]),
      attach: (next) => {
        if (lifetime.hasEnded) return;
        slices.attach();
        corruption.alarmsChanged();
        if (!corruption.isHealing) watches.feed.attach(next.mvcc);
      },
    });
    store.follow({
      detach: () => space.detach(),
      attach: () => {
        if (!lifetime.hasEnded) space.attach();
      },
    });
    store.follow({ detach: () => sent.close() });
    void lifetime.ended.then(async ({ error }) => {
      await this.#close({ flush: error === undefined }).catch(() => {});
      deps.onEnd(error);
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
    const { config, metrics, memberId, corruption, transport, configuration, loop } = this.#parts;
    const { flusher, space, slowDisk, departure, publication, lifetime } = this.#parts;
    nameMember(metrics, memberId, config);
    if (removal === undefined) await corruption.initialCheck();
    this.#isTransportOpen = true;
    await transport.listen();
    configuration.connectPeers();
    flusher.start();
    if (removal !== undefined) {
      // It answers its peers, and serves no clients.
      loop.start();
      departure.applied(removal);
      return;
    }
    space.start();
    corruption.start();
    loop.start();
    slowDisk.start();
    if (configuration.isAlone) configuration.campaign();
    else if (config.initialElectionTickAdvance) this.#parts.firstElection.start();
    if (config.autoPromote) this.#parts.autoPromotion.start();
    publication.publish().catch(lifetime.end);
  }

  /** Ends the member in order: everything applied is on disk when it resolves. */
  async stop(): Promise<void> {
    if (!this.#parts.lifetime.stop()) return;
    await this.#close({ flush: true });
  }

  async #close(options: { flush: boolean }): Promise<void> {
    const { loop, keeper, departure, flusher, corruption, slowDisk, transport } = this.#parts;
    const { exchange, watches, slices, space, sent, store, wal, unwritten } = this.#parts;
    loop.stop();
    keeper.steppedDown();
    this.#parts.auth.close();
    this.#parts.autoPromotion.stop();
    departure.stop();
    this.#parts.versions.stop();
    flusher.stop();
    corruption.stop();
    slowDisk.stop();
    this.#parts.firstElection.stop();
    if (this.#isTransportOpen) await transport.close();
    // The store to close below is the one that is there in the end.
    await exchange.over().catch(() => {});
    await Promise.all([watches.feed.detach(), slices.drained()]);
    await space.stop();
    await sent.close();
    try {
      if (options.flush) unwritten.write();
      await store.current.close(options);
    } finally {
      await wal.close();
    }
  }
}
