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
    const { store } = this.#parts;
    const done = this.#exchange(index, replay);
    store.withheld++;
    this.#running = done.then(
      () => {
        this.#running = undefined;
        store.withheld--;
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
