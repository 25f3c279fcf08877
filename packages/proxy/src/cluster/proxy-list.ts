/** The proxies that are registered under --resolver-prefix: read once, and then watched. */
import type { Logger, Timer } from "@quorate/host";
import {
  Event,
  KeyValue,
  KVService,
  mvccpb,
  RangeRequest,
  RangeResponse,
  toLatin1,
  WatchCreateRequest,
  WatchResponse,
} from "@quorate/proto";
import { joinMessage, type MessageBytes } from "@quorate/rpc";
import type { Upstream } from "../upstream/upstream.ts";
import type { IdentityClient, IdentityWatches } from "../watch/identity-watches.ts";
import { Receiver, type ReceiverStream } from "../watch/receiver.ts";
import { decodeRecord, type EndpointRecord } from "./endpoint-records.ts";

const RANGE = { path: KVService.methods.Range.path, isRepeatable: true };
/** Between two attempts, as in etcd. */
const RETRY_MS = 1000;
const CALL_TIMEOUT_MS = 5000;
/** Proxies beyond are not listed. */
export const MAX_PROXIES = 1024;

export class ProxyList implements ReceiverStream, IdentityClient {
  readonly requiresLeader = false;
  readonly #upstream: Upstream;
  readonly #range: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array };
  readonly #watches: () => IdentityWatches;
  readonly #logger: Logger;
  readonly #records = new Map<string, EndpointRecord>();
  #identity: IdentityWatches | undefined;
  #timer: Timer | undefined;
  #isClosed = false;

  /**
   * @param range the keys as the cluster knows them
   * @param watches the watches without an identity
   */
  constructor(
    upstream: Upstream,
    range: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array },
    watches: () => IdentityWatches,
    logger: Logger,
  ) {
    this.#upstream = upstream;
    this.#range = range;
    this.#watches = watches;
    this.#logger = logger;
  }

  /** The registered proxies, by key. */
  get records(): readonly EndpointRecord[] {
    return [...this.#records].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, record]) => record);
  }

  /** Begins to follow the keys. Returns at once. */
  start(): void {
    this.#read().catch((error: Error) => {
      this.#logger.warn("failed to establish endpoint watch", { error: error.message });
      this.#again();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#identity?.deleteClient(this);
  }

  offer(message: MessageBytes): boolean {
    for (const bytes of WatchResponse.decode(joinMessage(message)).events) {
      const { type, kv } = Event.decode(bytes);
      if (kv === undefined) continue;
      const pair = KeyValue.decode(kv);
      if (type === mvccpb.Event_EventType.DELETE) this.#records.delete(toLatin1(pair.key));
      else this.#put(pair);
    }
    return true;
  }

  force(): void {}

  fellBehind(): void {}

  /** The cluster has ended the watch. */
  ended(): void {
    this.#logger.info("endpoints watch channel closed");
    this.#again();
  }

  end(): void {
    this.#again();
  }

  progressed(): void {}

  async #read(): Promise<void> {
    const options = {
      metadata: [],
      deadlineMs: this.#upstream.clock.monotonicMs() + CALL_TIMEOUT_MS,
    };
    const request = RangeRequest.encode({ ...this.#range, limit: MAX_PROXIES });
    const { header, kvs } = RangeResponse.decode(
      await this.#upstream.call(RANGE, request, options),
    );
    if (this.#isClosed) return;
    this.#records.clear();
    for (const bytes of kvs) this.#put(KeyValue.decode(bytes));
    const create = WatchCreateRequest.create(this.#range);
    const next = (header?.revision ?? 0) + 1;
    const receiverOptions = { id: 0, wantsProgress: false, takesFragments: false };
    this.#identity = this.#watches();
    this.#identity.addClient(this);
    this.#identity.add(new Receiver(this, receiverOptions, create, next), next);
  }

  #put(pair: KeyValue): void {
    const key = toLatin1(pair.key);
    const record = decodeRecord(pair.value);
    if (record === undefined)
      this.#logger.warn("unmarshal endpoint update failed", { key: key.slice(0, 200) });
    else if (this.#records.has(key) || this.#records.size < MAX_PROXIES)
      this.#records.set(key, record);
  }

  #again(): void {
    if (this.#isClosed) return;
    this.#identity?.deleteClient(this);
    this.#identity = undefined;
    this.#timer?.cancel();
    this.#timer = this.#upstream.clock.after(RETRY_MS, () => this.start());
  }
}
