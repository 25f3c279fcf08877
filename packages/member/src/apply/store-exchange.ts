/**
 * A received store takes the place of the one in use. Reads wait meanwhile; watches,
 * compaction and snapshots that are being sent let go of the old store before it is closed, and go
 * on with the new one.
 */
import type { Disk, KeyspaceOpener } from "@quorate/host";
import { errorOf } from "@quorate/proto";
import { installReceived, Store, type StoreOptions } from "@quorate/store";
import type { FaultHook } from "../loop/fault-points.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { StoreRef } from "../reads/store-ref.ts";

export interface StoreExchangeParts {
  readonly disk: Disk;
  readonly keyspaces: KeyspaceOpener;
  readonly storeDir: string;
  /** What the store is opened with. */
  readonly storeOptions: StoreOptions;
  readonly faults: FaultHook | undefined;
  readonly store: StoreRef;
  /** Ends where there is no store any more. */
  readonly lifetime: Pick<Lifetime, "end">;
}

export class StoreExchange {
  readonly #parts: StoreExchangeParts;
  #running: Promise<void> | undefined;
  #hasFailed = false;

  constructor(parts: StoreExchangeParts) {
    this.#parts = parts;
  }

  /** True while there is no store to read; for good after an exchange that failed. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /**
   * Resolves when no exchange is under way; rejects with Stopped where one has failed, which is the
   * end of the member.
   */
  async over(): Promise<void> {
    while (this.#running !== undefined) {
      await this.#running;
      if (this.#hasFailed) throw errorOf("Stopped");
    }
  }

  /**
   * Puts the store that was received at `index` in place.
   * @param replay what the new store lacks of the old one, if anything: called before anybody reads
   * it
   */
  run(index: number, replay: (store: Store) => Promise<void> = async () => {}): Promise<void> {
    const done = this.#exchange(index, replay);
    this.#running = done.then(
      () => {
        this.#running = undefined;
      },
      (error: unknown) => {
        this.#hasFailed = true;
        this.#parts.lifetime.end(error);
      },
    );
    return done;
  }

  async #exchange(index: number, replay: (store: Store) => Promise<void>): Promise<void> {
    const { disk, keyspaces, storeDir, storeOptions, faults, store: ref } = this.#parts;
    faults?.("before-snapshot-install");
    await ref.detach();
    await ref.current.close({ flush: false });
    installReceived(disk, storeDir, index);
    const store = await Store.open(keyspaces, storeDir, storeOptions);
    await replay(store);
    ref.attach(store);
    faults?.("after-snapshot-install");
  }
}

/** The part that may make this member replace its store by another's. */
interface Healing {
  readonly isHealing: boolean;
  /** Resolves when it is over. */
  healed(): Promise<void>;
}

/** Whether the store in use may be read, and shown to clients. */
export class Readiness {
  readonly #exchange: StoreExchange;
  readonly #healing: Healing;

  constructor(exchange: StoreExchange, healing: Healing) {
    this.#exchange = exchange;
    this.#healing = healing;
  }

  /** Whether `servable` would resolve at once. */
  get isServable(): boolean {
    return !this.#exchange.isRunning && !this.#healing.isHealing;
  }

  /**
   * Resolves when the store may be read, which is at once unless a received one is being put in its
   * place; rejects with Stopped where that has failed.
   */
  async readable(): Promise<void> {
    await this.#exchange.over();
  }

  /** Resolves when, besides, this member is not about to replace its store by another's. */
  async servable(): Promise<void> {
    await this.#exchange.over();
    await this.#healing.healed();
  }
}
