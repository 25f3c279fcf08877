/** /v2/keys (etcd 3.4: etcdserver/api/v2http/client.go, keysHandler). */
import type { HttpExchange, HttpExchangeHandler } from "@quorate/host";
import type { Member } from "@quorate/member";
import { defined, fromLatin1, fromUtf8, idToHex, KVService, RangeRequest } from "@quorate/proto";
import { StatusError } from "@quorate/rpc";
import { type CallServices, HttpCaller } from "./calls.ts";
import { type Counted, countedAs, type StoreCounters } from "./counters.ts";
import { V2Error } from "./errors.ts";
import { served, toV2Error, type V2Exchange } from "./http.ts";
import { type KeyRequest, parseKeyRequest } from "./key-request.ts";
import { nodeKey, pathText, type Range } from "./keys.ts";
import type { V2Limits } from "./limits.ts";
import { listChildren } from "./listing.ts";
import { eventJson, nodeHead, nodeTail, viewOf } from "./node-json.ts";
import { decodeNode } from "./record.ts";
import { lookUp } from "./tree.ts";
import { cleared, rangesOf, Wait } from "./wait.ts";
import { Writes } from "./writes.ts";

const PREFIX = "/v2/keys";
/** A form needs up to three bytes for a byte of a value, and some for its other fields. */
const FORM_FACTOR = 3;
const FORM_OVERHEAD_BYTES: number = 64 << 10;
/** Reads of one request while compaction passes the revision that they read. */
const MAX_READS = 5;

export interface KeysDeps {
  readonly member: Member;
  readonly to: CallServices;
  readonly counters: StoreCounters;
  readonly limits: V2Limits;
}

/** Serves the keys. */
export function keysHandler(deps: KeysDeps): HttpExchangeHandler {
  const keys = new Keys(deps);
  const maxBodyBytes = deps.member.config.maxRequestBytes * FORM_FACTOR + FORM_OVERHEAD_BYTES;
  return served(["HEAD", "GET", "PUT", "POST", "DELETE"], maxBodyBytes, (it) => keys.serve(it));
}

class Keys {
  readonly #deps: KeysDeps;
  readonly #member: Member;
  readonly #writes: Writes;
  /** Waits by connection. */
  readonly #waits = new Map<string, number>();

  constructor(deps: KeysDeps) {
    this.#deps = deps;
    this.#member = deps.member;
    this.#writes = new Writes(deps.member);
  }

  serve(it: V2Exchange): void {
    const { exchange } = it;
    const caller = new HttpCaller(this.#deps.to, exchange);
    it.listen({ aborted: () => caller.cancel() });
    let counted: Counted | undefined;
    const run = async () => {
      const request = parseKeyRequest(exchange.head, it.path.slice(PREFIX.length), it.body);
      if (request.isWait && !request.isQuorum) {
        await caller.proved(() => this.#wait(it, caller, request));
        return;
      }
      counted = countedAs(request);
      await caller.proved(() => this.#respond(it, caller, request));
      this.#deps.counters.count(counted, true);
    };
    run().catch((error: unknown) => {
      if (counted !== undefined) this.#deps.counters.count(counted, false);
      exchange.respond(toV2Error(error).response(this.#clusterId()));
    });
  }

  async #respond(it: V2Exchange, caller: HttpCaller, request: KeyRequest): Promise<void> {
    const { exchange } = it;
    if (request.method === "GET" || request.method === "HEAD")
      return this.#read(it, caller, request);
    const { isCreated, index, body } = await this.#writes.write(caller, request);
    exchange.respond({ status: isCreated ? 201 : 200, headers: this.#headers(index), body });
  }

  // --- Reads ---

  async #read(it: V2Exchange, caller: HttpCaller, request: KeyRequest): Promise<void> {
    const { isQuorum, method } = request;
    if ((isQuorum && method === "GET") || !this.#member.isServable) await this.#member.current();
    for (let reads = 1; ; reads++) {
      try {
        const { index, pieces } = await this.#readAt(it.exchange, caller, request);
        return await sendLong(it, caller, this.#headers(index), pieces, this.#nextTurn);
      } catch (error) {
        const isCompacted = error instanceof StatusError && /compacted/.test(error.message);
        if (!isCompacted || reads === MAX_READS) throw error;
      }
    }
  }

  readonly #nextTurn = (): Promise<void> => this.#member.clock.turns.next();

  async #readAt(
    exchange: HttpExchange,
    caller: HttpCaller,
    { path, isRecursive }: KeyRequest,
  ): Promise<{ index: number; pieces: string[] }> {
    const { clock, store } = this.#member;
    const index = store.mvcc.currentRevision;
    const found = lookUp(store.mvcc, path, index);
    const wallMs = clock.wallMs();
    if (found.kind === "missing" || found.kind === "notDir") {
      await this.#permitted(caller, { key: nodeKey(path), rangeEnd: "" });
      if (found.kind === "notDir")
        throw new V2Error("NotDir", pathText(path.slice(0, found.at)), index);
      throw new V2Error("KeyNotFound", pathText(path.slice(0, found.at + 1)), index);
    }
    if (found.kind === "file") {
      const key = fromLatin1(nodeKey(path));
      const range = RangeRequest.create({ key, revision: index, serializable: true });
      const { kvs } = await caller.call(KVService.methods.Range, range);
      return {
        index,
        pieces: [
          eventJson(
            "get",
            viewOf(path, decodeNode(defined(kvs[0], "the file")), wallMs),
            undefined,
          ),
        ],
      };
    }
    const listing = {
      caller,
      wallMs,
      nextTurn: this.#nextTurn,
      limits: this.#deps.limits,
      hold: (sizeBytes: number) => exchange.hold(sizeBytes),
    };
    const nodes = await listChildren(listing, path, index, isRecursive);
    const view =
      found.kind === "root"
        ? { path, isDir: true, modifiedIndex: 0, createdIndex: 0 }
        : viewOf(path, found.node, wallMs);
    const head = nodeHead(view);
    const open = `{"action":"get","node":${head}`;
    const tail = `${nodeTail(view, head)}}\n`;
    return {
      index,
      pieces: nodes.length === 0 ? [open + tail] : [`${open},"nodes":[`, ...nodes, `]${tail}`],
    };
  }

  /** What does not exist is known only to a caller that may read it. */
  async #permitted(caller: HttpCaller, { key, rangeEnd }: Range): Promise<void> {
    if (!this.#member.store.auth.isEnabled) return;
    const range = { key: fromLatin1(key), rangeEnd: fromLatin1(rangeEnd) };
    const request = RangeRequest.create({ ...range, limit: 1, keysOnly: true, serializable: true });
    await caller.call(KVService.methods.Range, request);
  }

  // --- Waits ---

  async #wait(it: V2Exchange, caller: HttpCaller, request: KeyRequest): Promise<void> {
    const { exchange } = it;
    if (!this.#member.isServable) await this.#member.current();
    const mvcc = () => this.#member.store.mvcc;
    const { currentRevision, compactRevision } = mvcc();
    const { waitIndex } = request;
    const from = waitIndex === 0 ? currentRevision + 1 : waitIndex;
    // The event needs the state before it.
    if (waitIndex > 0 && waitIndex <= compactRevision) {
      for (const range of rangesOf(request)) await this.#permitted(caller, range);
      throw cleared(compactRevision, waitIndex, currentRevision);
    }
    if (caller.cancelled) return;
    const release = this.#countWait(exchange.head.peerAddress);
    try {
      const wait = new Wait(
        exchange,
        caller,
        { ...request, from },
        {
          clock: this.#member.clock,
          maxHeldRevisions: this.#deps.limits.maxHeldRevisions,
          mvcc,
          headers: (index) => this.#headers(index),
          refuse: (error) => exchange.respond(error.response(this.#clusterId())),
          closed: release,
        },
      );
      it.listen({
        drained: () => wait.drained(),
        aborted: () => {
          caller.cancel();
          wait.close();
        },
      });
    } catch (error) {
      release();
      throw error;
    }
  }

  /** @throws V2Error for one too many */
  #countWait(connection: string): () => void {
    const { counters, limits } = this.#deps;
    const waits = this.#waits.get(connection) ?? 0;
    if (waits >= limits.maxConnectionWaits || counters.watchers >= limits.maxWaits)
      throw new V2Error("RaftInternal", "too many waits");
    this.#waits.set(connection, waits + 1);
    counters.watchers++;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      counters.watchers--;
      const left = (this.#waits.get(connection) ?? 1) - 1;
      if (left === 0) this.#waits.delete(connection);
      else this.#waits.set(connection, left);
    };
  }

  // --- Headers ---

  #clusterId(): Record<string, string> {
    return { "x-etcd-cluster-id": idToHex(this.#member.clusterId) };
  }

  #headers(index: number): Record<string, string> {
    return {
      ...this.#clusterId(),
      "content-type": "application/json",
      "x-etcd-index": String(index),
      "x-raft-index": String(this.#member.commitIndex),
      "x-raft-term": String(this.#member.term),
    };
  }
}

/** Characters that are sent at once; a shorter body is one piece. */
const PIECE_CHARS: number = 64 << 10;
/** Pieces of one turn of the event loop. */
const PIECES_PER_TURN = 8;

/** Resolves when all is sent, or the client is gone. */
async function sendLong(
  { exchange, listen }: V2Exchange,
  caller: HttpCaller,
  headers: Readonly<Record<string, string>>,
  texts: readonly string[],
  nextTurn: () => Promise<void>,
): Promise<void> {
  let wake = (): void => {};
  listen({
    drained: () => wake(),
    aborted: () => {
      caller.cancel();
      wake();
    },
  });
  let sent = 0;
  for (const piece of joined(texts)) {
    if (sent === 0 && piece.isLast) {
      exchange.respond({ status: 200, headers, body: piece.text });
      return;
    }
    if (sent === 0) exchange.start(200, headers);
    const hasSpace = exchange.send(fromUtf8(piece.text));
    sent++;
    if (!hasSpace && !caller.cancelled) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    } else if (sent % PIECES_PER_TURN === 0) await nextTurn();
    if (caller.cancelled) return;
  }
  exchange.end();
}

interface Piece {
  readonly text: string;
  readonly isLast: boolean;
}

function* joined(texts: readonly string[]): Generator<Piece> {
  let text = "";
  for (const [i, one] of texts.entries()) {
    text += one;
    if (text.length < PIECE_CHARS || i === texts.length - 1) continue;
    yield { text, isLast: false };
    text = "";
  }
  yield { text, isLast: true };
}
