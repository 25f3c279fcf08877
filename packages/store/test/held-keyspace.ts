/** A keyspace whose writes end when the test says so. */
import {
  type Keyspace,
  type KeyspaceRange,
  type KeyspaceRecord,
  type KeyspaceSnapshot,
  type KeyspaceWrite,
  keptWrite,
} from "@quorate/host";

export class HeldKeyspace implements Keyspace {
  /** Every batch that was handed over, oldest first. */
  readonly writes: (readonly KeyspaceWrite[])[] = [];
  readonly #inner: Keyspace;
  #arrived = Promise.withResolvers<void>();
  #let = Promise.withResolvers<void>();

  constructor(inner: Keyspace) {
    this.#inner = inner;
  }

  /** Resolves when a write is held. */
  waiting(): Promise<void> {
    return this.#arrived.promise;
  }

  /** Waits for a write and lets it go on. */
  async release(): Promise<void> {
    await this.waiting();
    this.#arrived = Promise.withResolvers();
    const go = this.#let;
    this.#let = Promise.withResolvers();
    go.resolve();
  }

  async write(writes: Iterable<KeyspaceWrite>): Promise<void> {
    const batch = Array.from(writes, keptWrite);
    this.writes.push(batch);
    const go = this.#let.promise;
    this.#arrived.resolve();
    await go;
    await this.#inner.write(batch);
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#inner.get(key);
  }

  getMany(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    return this.#inner.getMany(keys);
  }

  scan(range: KeyspaceRange, options?: { sliceBytes?: number }): AsyncIterable<KeyspaceRecord[]> {
    return this.#inner.scan(range, options);
  }

  snapshot(): KeyspaceSnapshot {
    return this.#inner.snapshot();
  }

  compact(range: KeyspaceRange): Promise<void> {
    return this.#inner.compact(range);
  }

  settle(): Promise<void> {
    return this.#inner.settle();
  }

  sizeOnDiskBytes(): number {
    return this.#inner.sizeOnDiskBytes();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
