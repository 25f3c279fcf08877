/**
 * A wait (`?wait=true`) as a stream of v3's Watch: its permission, budgets and history are those of
 * every watch. The response's head is sent when the watch has begun.
 *
 *     one key         wait on a path, not recursive
 *     one range       wait on everything
 *     key and range   a node, and all that is below it; their events are put in order by asking the
 *                     stream how far both have come
 */
import type { Clock, HttpExchange } from "@quorate/host";
import {
  defined,
  Event,
  Event_EventType,
  fromLatin1,
  fromUtf8,
  KeyValue,
  toLatin1,
  WatchCreateRequest,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { Status } from "@quorate/rpc";
import type { Mvcc } from "@quorate/store";
import type { HttpCaller, OpenStream } from "./calls.ts";
import { V2Error } from "./errors.ts";
import { eventOf, type KeyChange, type Watched } from "./events.ts";
import { isRefusalText, unauthorized } from "./http.ts";
import { directoryKey, nodeKey, pathOfKey, type Range, subtree } from "./keys.ts";

/** Pause between two requests for the progress of a stream that has still to catch up. */
const PROGRESS_RETRY_MS = 20;
export interface WaitDeps {
  readonly clock: Clock;
  readonly maxHeldRevisions: number;
  /** The store as it is now. */
  mvcc(): Mvcc;
  /** Headers of a response, with the index of the store. */
  headers(index: number): Record<string, string>;
  /** Sends an error in place of the response's head. */
  refuse(error: V2Error): void;
  /** Called once when the wait is over. */
  closed(): void;
}

export interface WaitRequest extends Watched {
  readonly isStream: boolean;
  /** The first revision whose event may be shown. */
  readonly from: number;
}

/** One wait. */
export class Wait {
  readonly #exchange: HttpExchange;
  readonly #request: WaitRequest;
  readonly #deps: WaitDeps;
  readonly #startIndex: number;
  readonly #stream: OpenStream | undefined;
  readonly #ranges: readonly Range[];
  #created = 0;
  #hasSpace = true;
  #isOver = false;
  /** Changes by revision, until both watches have passed it. */
  readonly #held = new Map<number, KeyChange[]>();
  #isProgressDue = false;

  constructor(exchange: HttpExchange, caller: HttpCaller, request: WaitRequest, deps: WaitDeps) {
    this.#exchange = exchange;
    this.#request = request;
    this.#deps = deps;
    this.#startIndex = deps.mvcc().currentRevision;
    this.#ranges = rangesOf(request);
    this.#stream = caller.open(WatchService.methods.Watch, {
      message: (bytes) => this.#message(WatchResponse.decode(bytes)),
      ended: (status) => this.#ended(status),
      hasSpace: () => this.#hasSpace,
      bufferedBytes: () => exchange.bufferedBytes,
    });
    for (const { key, rangeEnd } of this.#ranges) {
      if (this.#isOver) return;
      const value = WatchCreateRequest.create({
        key: fromLatin1(key),
        rangeEnd: fromLatin1(rangeEnd),
        startRevision: request.from,
      });
      const union = { case: "createRequest" as const, value };
      this.#stream?.listener.message?.(WatchRequest.encode({ requestUnion: union }));
    }
  }

  /** The exchange has space again. */
  drained(): void {
    this.#hasSpace = true;
    this.#stream?.listener.drained?.();
  }

  /** The client is gone, or the wait has what it was for. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#held.clear();
    // Not amid the sending of the stream's own events.
    this.#deps.clock.endOfTurn(() => this.#stream?.close());
    this.#deps.closed();
  }

  #message(response: WatchResponse): void {
    if (this.#isOver) return;
    if (response.canceled) this.#cancelled(response);
    else if (response.created) this.#begun();
    else if (response.events.length === 0) this.#release(response.header?.revision ?? 0);
    else this.#take(response.events);
  }

  #begun(): void {
    this.#created++;
    if (this.#created !== this.#ranges.length) return;
    const headers = this.#deps.headers(this.#startIndex);
    this.#exchange.start(200, headers);
  }

  #cancelled({ compactRevision, cancelReason }: WatchResponse): void {
    if (this.#created === this.#ranges.length) {
      this.#finish();
      return;
    }
    const { from } = this.#request;
    if (compactRevision > 0) this.#refuse(cleared(compactRevision, from, this.#startIndex));
    else this.#refuse(refusal(cancelReason));
  }

  #ended(status: Status | undefined): void {
    if (this.#isOver) return;
    if (this.#created === this.#ranges.length) this.#finish();
    else {
      this.#refuse(refusal(status?.message ?? ""));
    }
  }

  #refuse(error: V2Error): void {
    this.close();
    this.#deps.refuse(error);
  }

  #finish(): void {
    this.close();
    this.#exchange.end();
  }

  #take(events: readonly Uint8Array[]): void {
    let revision = 0;
    for (const bytes of events) {
      const { type, kv } = Event.decode(bytes);
      const change = {
        isDeleted: type === Event_EventType.DELETE,
        kv: KeyValue.decode(defined(kv, "the key of an event")),
      };
      revision = change.kv.modRevision;
      this.#hold(revision, change);
    }
    if (this.#held.size > this.#deps.maxHeldRevisions) {
      this.#finish();
      return;
    }
    if (this.#ranges.length === 1) this.#release(revision);
    else this.#askProgress();
  }

  /** Of a revision's deletions the first node is enough, and one event needs no later revision. */
  #hold(revision: number, change: KeyChange): void {
    if (pathOfKey(toLatin1(change.kv.key)) === undefined) return;
    const held = this.#held.get(revision);
    if (held === undefined) this.#held.set(revision, [change]);
    else if (!change.isDeleted || !held.some(({ isDeleted }) => isDeleted)) held.push(change);
  }

  #askProgress(): void {
    if (this.#isProgressDue) return;
    this.#isProgressDue = true;
    const { clock } = this.#deps;
    const ask = (): void => {
      if (this.#isOver || this.#held.size === 0) {
        this.#isProgressDue = false;
        return;
      }
      const union = { case: "progressRequest" as const, value: {} };
      this.#stream?.listener.message?.(WatchRequest.encode({ requestUnion: union }));
      if (this.#held.size > 0 && !this.#isOver) clock.after(PROGRESS_RETRY_MS, ask);
      else this.#isProgressDue = false;
    };
    clock.endOfTurn(ask);
  }

  /** Shows the events up to a revision, behind which no earlier ones follow. */
  #release(revision: number): void {
    const revisions = [...this.#held.keys()].filter((one) => one <= revision);
    for (const one of revisions.sort((a, b) => a - b)) {
      if (this.#isOver) return;
      const changes = defined(this.#held.get(one), "the changes of a revision");
      this.#held.delete(one);
      const event = eventOf(this.#deps.mvcc(), changes, this.#request, this.#deps.clock.wallMs());
      if (event === undefined) continue;
      this.#hasSpace = this.#exchange.send(fromUtf8(event));
      if (!this.#request.isStream) this.#finish();
    }
  }
}

export function rangesOf({ path, isRecursive }: Watched): readonly Range[] {
  if (path.length === 0)
    return isRecursive ? [subtree(path)] : [{ key: directoryKey(path), rangeEnd: "" }];
  const node = { key: nodeKey(path), rangeEnd: "" };
  return isRecursive ? [node, subtree(path)] : [node];
}

/** The history from an index on is not there any more (etcd: event_history.go, scan). */
export function cleared(compactRevision: number, index: number, current: number): V2Error {
  const reason = `the requested history has been cleared [${compactRevision + 1}/${index}]`;
  return new V2Error("EventIndexCleared", reason, current);
}

function refusal(reason: string): V2Error {
  return isRefusalText(reason) ? unauthorized() : new V2Error("RaftInternal", reason);
}
