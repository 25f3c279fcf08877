/** Watches as npm's etcd3 has them: event emitters. */
import type { Buffer } from "node:buffer";
import { EventEmitter } from "node:events";
import { ERRORS, type ResponseHeader, WatchResponse } from "@quorate/proto";
import type { Watch } from "../src/watch.ts";
import { castGrpcError, castGrpcErrorMessage } from "./errors.ts";
import type { IKeyValue, IWatchCreateRequest, IWatchResponse } from "./messages.ts";
import type { ConnectionPool } from "./pool.ts";
import { type KeyPrefix, type Rangable, Range, toBuffer } from "./range.ts";
import { shapeOf } from "./shape.ts";

/** What a watch tells, and with which values. */
interface WatcherEvents {
  connecting: [request: IWatchCreateRequest];
  connected: [response: IWatchResponse];
  data: [response: IWatchResponse];
  put: [kv: IKeyValue, previous: IKeyValue | null];
  delete: [kv: IKeyValue, previous: IKeyValue | null];
  /** The stream broke; the watch goes on over another one. */
  disconnected: [error: Error];
  /** The watch is over: it was cancelled. */
  end: [];
  /** The watch is over: the server refused it, or has compacted what it needs. */
  error: [error: Error];
}

/** The watches of a client that are not over. */
export class WatchManager {
  watchers: Watcher[] = [];
}

/** The words for what is left out. */
const FILTERS = { put: "Nodelete", delete: "Noput" } as const;

/** Puts together a watch. */
export class WatchBuilder {
  readonly #pool: ConnectionPool;
  readonly #manager: WatchManager;
  readonly #prefixed: KeyPrefix;
  readonly #request: IWatchCreateRequest = { progress_notify: true };

  /** Made by client.watch(). */
  constructor(pool: ConnectionPool, manager: WatchManager, prefixed: KeyPrefix) {
    this.#pool = pool;
    this.#manager = manager;
    this.#prefixed = prefixed;
  }

  key(key: string | Buffer): this {
    this.#request.key = toBuffer(key);
    return this;
  }

  prefix(prefix: string | Buffer): this {
    return this.inRange({ prefix });
  }

  inRange(range: Rangable): this {
    const { start, end } = Range.from(range);
    this.#request.key = start;
    this.#request.range_end = end;
    return this;
  }

  /** Only changes of this kind. */
  only(...kinds: ("put" | "delete")[]): this {
    this.#request.filters = kinds.map((kind) => FILTERS[kind]);
    return this;
  }

  /** @deprecated As only(), which is what it does in npm's etcd3. */
  ignore(...kinds: ("put" | "delete")[]): this {
    return this.only(...kinds);
  }

  withPreviousKV(): this {
    this.#request.prev_kv = true;
    return this;
  }

  /** The first revision to see. */
  startRevision(revision: string | number): this {
    this.#request.start_revision = revision;
    return this;
  }

  /** The watch, which begins at once. */
  watcher(): Watcher {
    return new Watcher(
      this.#pool,
      this.#manager,
      this.#prefixed,
      this.#prefixed.request(this.#request),
    );
  }

  /** The watch, once the server has confirmed it. */
  create(): Promise<Watcher> {
    const watcher = this.watcher();
    return new Promise((resolve, reject) => {
      watcher.once("connected", () => {
        watcher.off("error", reject);
        resolve(watcher);
      });
      watcher.once("error", reject);
    });
  }
}

/**
 * A watch: "put" and "delete" tell each change, "data" each response. It goes on at another member,
 * without a gap, when its own is lost.
 */
export class Watcher extends EventEmitter<WatcherEvents> {
  readonly request: IWatchCreateRequest;
  readonly #pool: ConnectionPool;
  readonly #manager: WatchManager;
  readonly #prefixed: KeyPrefix;
  readonly #ended: Promise<void>;
  #watch: Watch | undefined;
  #isCancelled = false;

  /** Made by WatchBuilder. */
  constructor(
    pool: ConnectionPool,
    manager: WatchManager,
    prefixed: KeyPrefix,
    request: IWatchCreateRequest,
  ) {
    super();
    this.request = { ...request };
    this.#pool = pool;
    this.#manager = manager;
    this.#prefixed = prefixed;
    manager.watchers = [...manager.watchers, this];
    // Behind the listeners that the caller adds now.
    this.#ended = Promise.resolve().then(() => this.#run());
  }

  /** The revision from which it goes on after a break, or null before it has one. */
  lastRevision(): number | null {
    const { start_revision: revision } = this.request;
    return revision === undefined ? null : Number(revision);
  }

  /** Ends it; resolves when nothing comes any more. */
  async cancel(): Promise<void> {
    this.#isCancelled = true;
    this.#watch?.cancel();
    await this.#ended;
  }

  async #run(): Promise<void> {
    try {
      if (!this.#isCancelled) await this.#follow();
    } catch (error) {
      this.#isCancelled ||= this.#pool.closed.aborted;
      if (!this.#isCancelled) this.#tell("error", castGrpcError(error as Error));
    } finally {
      this.#manager.watchers = this.#manager.watchers.filter((one) => one !== this);
    }
    if (this.#isCancelled) this.#tell("end");
  }

  async #follow(): Promise<void> {
    const { key, range_end, start_revision, prev_kv, filters = [] } = this.request;
    const [filter] = filters;
    this.#tell("connecting", this.request);
    this.#watch = this.#pool.client.watch(key ?? "", {
      rangeEnd: range_end,
      revision: Number(start_revision ?? 0),
      prevKv: prev_kv === true,
      progressNotify: true,
      // Both kinds would leave nothing.
      ...(filters.length === 1 ? { only: filter === "Noput" ? "delete" : "put" } : {}),
      onCreated: (header) => this.#connected(header),
      onBreak: (error) => {
        this.#tell("disconnected", castGrpcError(error));
        this.#tell("connecting", this.request);
      },
      signal: this.#pool.closed,
    });
    for await (const response of this.#watch) {
      if (!response.canceled) this.#data(toShape(response));
      else this.#tell("error", refusal(response));
    }
    this.#isCancelled ||= this.#pool.closed.aborted;
  }

  #connected(header: ResponseHeader): void {
    const response = toShape(WatchResponse.create({ header, created: true }));
    this.#passed(response);
    this.#tell("connected", response);
  }

  #data(response: IWatchResponse): void {
    for (const event of response.events) {
      event.kv.key = this.#prefixed.strip(event.kv.key);
      if (event.prev_kv !== null) event.prev_kv.key = this.#prefixed.strip(event.prev_kv.key);
      this.#tell(event.type === "Put" ? "put" : "delete", event.kv, event.prev_kv);
    }
    this.#passed(response);
    this.#tell("data", response);
  }

  #passed({ header }: IWatchResponse): void {
    this.request.start_revision = String(BigInt(header.revision) + 1n);
  }

  /** A listener that throws does so outside of the watch, which goes on. */
  #tell<E extends keyof WatcherEvents>(event: E, ...values: WatcherEvents[E]): void {
    try {
      (this as EventEmitter).emit(event, ...values);
    } catch (error) {
      setImmediate(() => {
        throw error;
      });
    }
  }
}

/** etcd gives no reason where it has compacted what the watch needs. */
function refusal({ compactRevision, cancelReason }: WatchResponse): Error {
  const isCompacted = compactRevision > 0 && cancelReason === "";
  const reason = isCompacted ? ERRORS.Compacted.text : cancelReason;
  return castGrpcErrorMessage(`Watcher canceled: ${reason}`);
}

function toShape(response: WatchResponse): IWatchResponse {
  return shapeOf(WatchResponse.typeName).decode(WatchResponse.encode(response)) as never;
}
