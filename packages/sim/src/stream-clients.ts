/**
 * Clients that read ranges in parts (RangeStream). What the parts come to is in the history, as the
 * answer to a Range, so all judges of reads judge it; and of the parts themselves:
 *
 *   STREAM-1 parts       the last part alone has a header; no part is empty but the last, and keys
 *                        ascend from part to part
 *   STREAM-2 broken off  what was received before a member or a connection was lost is the
 *                        beginning of the range at one revision
 */
import { KVService, RangeResponse, RangeStreamResponse } from "@quorate/proto";
import { Actor, type ActorDeps } from "./base/actor.ts";
import { toModelKv } from "./base/codec.ts";
import type { ModelOp } from "./base/model.ts";
import { kvFields } from "./base/model-difference.ts";
import { type Safety, violate } from "./check/safety.ts";
import type { Clients } from "./clients.ts";
import { type ClientStreamListener, ENDED_BY_SERVER, type Reply } from "./exchanges.ts";
import type { Node } from "./node.ts";

const { path: PATH } = KVService.methods.RangeStream;
const CALL_TIMEOUT_MS = 10_000;
/** Keys of its own: more than the first parts have. */
const KEYS = 44;
/** Keys that one transaction writes. */
const WRITTEN_TOGETHER = 11;

type ModelRead = Extract<ModelOp, { kind: "range" }>;

export interface StreamClientsDeps extends ActorDeps {
  readonly clients: Clients;
  readonly safety: Safety;
}

export class StreamClients extends Actor<StreamClientsDeps> {
  #writes = 0;
  readonly counts = { whole: 0, parts: 0, broken: 0 };

  start(): void {
    if (this.options.streamEveryMs > 0)
      this.#work().catch((error: unknown) => this.deps.fail(error));
  }

  async #work(): Promise<void> {
    const { scheduler, nodes } = this.deps;
    while (!this.isStopped) {
      await scheduler.delay(2 * this.random.unit() * this.options.streamEveryMs);
      if (this.isStopped) return;
      const node = nodes[this.random.below(nodes.length)];
      if (this.#writes < KEYS / WRITTEN_TOGETHER || this.random.below(3) === 0)
        await this.#write(node);
      else await this.#read(node);
    }
  }

  #key(i: number): string {
    return `s${String.fromCharCode(97 + Math.floor(i / 10))}${i % 10}`;
  }

  async #write(node: Node): Promise<void> {
    const first = this.#writes++;
    const value = `stream.${first}`;
    const success = Array.from({ length: WRITTEN_TOGETHER }, (_, i): ModelOp => {
      const key = this.#key((first * WRITTEN_TOGETHER + i) % KEYS);
      return { kind: "put", key, value };
    });
    const mode = { serializable: false, atRevision: 0 };
    const txn = { kind: "txn", compares: [], success, failure: [] } as const;
    await this.deps.clients.call("stream", node, txn, mode, CALL_TIMEOUT_MS);
  }

  async #read(node: Node): Promise<void> {
    const random = this.random;
    const { clients } = this.deps;
    const key = this.#key(random.below(KEYS));
    const ranges = [
      { key: "s", end: "t" },
      { key: "s", end: "t" },
      { key, end: "\0" },
      { key: "\0", end: "\0" },
      { key: "s", end: key },
      { key, end: "" },
    ];
    const request: ModelRead = {
      kind: "range",
      ...ranges[random.below(ranges.length)],
      ...(random.below(3) === 0 && { limit: 1 + random.below(40) }),
      ...(random.below(8) === 0 && { keysOnly: true }),
      ...(random.below(8) === 0 && { countOnly: true }),
    };
    const isPast = random.below(6) === 0;
    const mode = {
      serializable: random.below(3) === 0,
      atRevision: isPast ? Math.max(1, clients.knownRevision - random.below(20)) : 0,
    };
    const exchange = (bytes: Uint8Array) => this.#stream(node, bytes, request);
    await clients.call("stream", node, request, mode, CALL_TIMEOUT_MS, exchange);
  }

  /** All parts as one RangeResponse. */
  #stream(node: Node, bytes: Uint8Array, request: ModelRead): Promise<Reply> {
    const { network, scheduler } = this.deps;
    const random = this.random;
    const parts = new Parts();
    const { timesAltered } = node;
    return new Promise((resolve) => {
      const done = (reply: Reply) => {
        timer.cancel();
        resolve(reply);
      };
      const listener: ClientStreamListener = {
        message: (message) => this.#guard(() => parts.add(RangeStreamResponse.decode(message))),
        ended: (reason) => {
          this.#guard(() => {
            this.counts.parts += parts.count;
            if (reason === ENDED_BY_SERVER) {
              this.counts.whole++;
              done({ bytes: parts.whole() });
              return;
            }
            this.counts.broken++;
            if (timesAltered === 0 && node.timesAltered === 0)
              this.#looksBegun(node, parts, request);
          });
          done({ error: reason });
        },
      };
      const stream = network.open(node, PATH, listener, {
        readMs: [0, 0, 5, 40][random.below(4)],
        budgetBytes: 200,
      });
      stream.send(bytes);
      const timer = scheduler.after(CALL_TIMEOUT_MS, () => {
        stream.close();
        done({ error: "the client's time is up" });
      });
    });
  }

  #guard(judge: () => void): void {
    try {
      judge();
    } catch (error) {
      this.deps.fail(error);
    }
  }

  /** STREAM-2. */
  #looksBegun(node: Node, parts: Parts, request: ModelRead): void {
    const got = JSON.stringify(parts.kvs.map(toModelKv).map(kvFields));
    if (parts.kvs.length === 0) return;
    const { safety } = this.deps;
    for (let revision = safety.lastState.revision; revision >= 1; revision--) {
      const state = safety.stateAt(revision);
      if (state === undefined) continue;
      const { answers } = state.apply({ ...request, limit: parts.kvs.length }).answer;
      const [answer] = answers;
      if (answer.kind === "range" && JSON.stringify(answer.kvs.map(kvFields)) === got) return;
    }
    violate("STREAM-2", `${node.name} began a range with ${got}, which it was at no revision`);
  }
}

/** The parts of one stream, as they come. */
class Parts {
  readonly kvs: Uint8Array[] = [];
  #end: RangeResponse | undefined;
  #lastKey: string | undefined;
  count = 0;

  /** STREAM-1. */
  add({ rangeResponse }: RangeStreamResponse): void {
    if (rangeResponse === undefined) violate("STREAM-1", "a part has no response in it");
    if (this.#end !== undefined) violate("STREAM-1", "a part comes after the last one");
    this.count++;
    const { kvs, header } = rangeResponse;
    if (header !== undefined) this.#end = rangeResponse;
    else if (kvs.length === 0) violate("STREAM-1", "a part in the middle has no key");
    for (const bytes of kvs) {
      const { key } = toModelKv(bytes);
      if (this.#lastKey !== undefined && key <= this.#lastKey)
        violate("STREAM-1", `the key ${key} comes after ${this.#lastKey}`);
      this.#lastKey = key;
      this.kvs.push(bytes.slice());
    }
  }

  /** Throws a Violation for a stream that ended in order without its last part. */
  whole(): Uint8Array {
    if (this.#end === undefined) violate("STREAM-1", "a stream ends well without its last part");
    const { header, more, count } = this.#end;
    return RangeResponse.encode({ header, kvs: this.kvs, more, count });
  }
}
