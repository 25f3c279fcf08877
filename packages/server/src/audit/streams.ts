/** The audit lines of streams: of each watch, and of any other stream when it ends. */
import {
  EMPTY,
  GrpcCode,
  KVService,
  type WatchCreateRequest,
  type WatchId,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import {
  type CallContext,
  joinMessage,
  type MessageBytes,
  type Status,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
  wrappedCall,
  wrappedListener,
} from "@quorate/rpc";
import { isAboutWatch, revisionOfChunk } from "./response-head.ts";
import { type Subject, subjectOfWatch } from "./subjects.ts";
import { OK, statusOf } from "./verdict.ts";

const CANCELED: Status = { code: GrpcCode.Canceled, message: "context canceled" };
const NOTHING: Subject = { accesses: [], fields: [] };

/** Watches of one stream that wait for their creation; further ones are logged without keys. */
export const MAX_PENDING_WATCHES = 1024;
/** Watches of one stream whose end can be logged with its keys. */
export const MAX_KNOWN_WATCHES = 4096;

/** Where lines of streams come from. */
export interface CallLog {
  /** The monotonic time. */
  nowMs(): number;
  /** What the first message of a stream is about. */
  subjectOf(path: string, request: Uint8Array): Subject;
  /** A call, or a part of a stream, has ended. */
  ended(
    context: CallContext,
    startMs: number,
    subject: Subject,
    status: Status,
    revision: number,
  ): void;
  /** Whether a read that succeeded is not the one that is logged of so many; it counts. */
  isLeftOut(path: string, request: Uint8Array): boolean;
}

/** A stream handler whose calls are logged. */
export function auditedStream(path: string, handler: StreamHandler, audit: CallLog): StreamHandler {
  const Log = LOGS.get(path) ?? StreamLog;
  return (call) => {
    const log = new Log(call.context, audit);
    let listener: StreamListener;
    try {
      listener = handler(observed(call, log));
    } catch (error) {
      log.over(statusOf(error));
      throw error;
    }
    return wrappedListener(listener, {
      message: (bytes) => {
        log.received(bytes);
        listener.message?.(bytes);
      },
      cancelled: () => {
        log.over(CANCELED);
        listener.cancelled?.();
      },
    });
  };
}

/** The call, which shows its log what is sent and how it ends. */
function observed(call: StreamCall, log: StreamLog): StreamCall {
  return wrappedCall(call, call.context, {
    send: (message) => {
      log.sent(message);
      return call.send(message);
    },
    end: (status) => {
      log.over(status ?? OK);
      call.end(status);
    },
  });
}

/** A line when the stream ends; its subject is that of its first message. */
class StreamLog {
  protected readonly context: CallContext;
  protected readonly audit: CallLog;
  protected readonly startMs: number;
  #subject: Subject | undefined;
  #isOver = false;

  constructor(context: CallContext, audit: CallLog) {
    this.context = context;
    this.audit = audit;
    this.startMs = audit.nowMs();
  }

  received(bytes: Uint8Array): void {
    this.#subject ??= this.audit.subjectOf(this.context.path, bytes);
  }

  sent(_message: MessageBytes): void {}

  over(status: Status): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.ended(status);
  }

  protected ended(status: Status): void {
    this.line(status, 0);
  }

  protected line(status: Status, revision: number): void {
    this.audit.ended(this.context, this.startMs, this.#subject ?? NOTHING, status, revision);
  }
}

/** A range in parts: a read like any other, whose last part has the revision. */
class RangeLog extends StreamLog {
  #revision = 0;

  override sent(message: MessageBytes): void {
    this.#revision = revisionOfChunk(message);
  }

  protected override ended(status: Status): void {
    if (status.code === GrpcCode.OK && this.audit.isLeftOut(this.context.path, EMPTY)) return;
    this.line(status, this.#revision);
  }
}

interface PendingWatch {
  readonly subject: Subject;
  readonly sinceMs: number;
  /** Watches beyond the bound are a number, without their keys. */
  count: number;
}

/** A line for each watch; the stream itself has one only where it was refused. */
class WatchLog extends StreamLog {
  /** In the order of the requests, which is that of the responses. */
  readonly #pending: PendingWatch[] = [];
  readonly #known = new Map<WatchId, Subject>();

  override received(bytes: Uint8Array): void {
    try {
      const { requestUnion } = WatchRequest.decode(bytes);
      if (requestUnion?.case !== "createRequest") return;
      this.#await(requestUnion.value);
    } catch {
      // The service refuses it.
    }
  }

  #await(request: WatchCreateRequest): void {
    const sinceMs = this.audit.nowMs();
    const last = this.#pending.at(-1);
    if (this.#pending.length < MAX_PENDING_WATCHES)
      this.#pending.push({ subject: subjectOfWatch(request), sinceMs, count: 1 });
    else if (last?.subject === NOTHING) last.count++;
    else this.#pending.push({ subject: NOTHING, sinceMs, count: 1 });
  }

  #next(): PendingWatch | undefined {
    const next = this.#pending[0];
    if (next !== undefined && --next.count === 0) this.#pending.shift();
    return next;
  }

  override sent(message: MessageBytes): void {
    if (!isAboutWatch(message)) return;
    const response = WatchResponse.decode(joinMessage(message));
    const { watchId, created, canceled, cancelReason } = response;
    const revision = response.header?.revision ?? 0;
    const status = canceled ? statusOfReason(cancelReason) : OK;
    if (created) {
      const pending = this.#next();
      const subject = pending?.subject ?? NOTHING;
      if (!canceled && this.#known.size < MAX_KNOWN_WATCHES) this.#known.set(watchId, subject);
      this.audit.ended(this.context, pending?.sinceMs ?? this.startMs, subject, status, revision);
      return;
    }
    const subject = this.#known.get(watchId) ?? NOTHING;
    this.#known.delete(watchId);
    // One that its client ended needs no line.
    if (cancelReason !== "")
      this.audit.ended(this.context, this.startMs, subject, status, revision);
  }

  protected override ended(status: Status): void {
    for (const { subject, sinceMs } of this.#pending.splice(0))
      this.audit.ended(this.context, sinceMs, subject, status, 0);
    if (status.code !== GrpcCode.OK && status.code !== GrpcCode.Canceled) super.ended(status);
  }
}

/** A watch that was canceled has a reason but no code. */
function statusOfReason(reason: string): Status {
  const isDenied = /permission denied$/.test(reason);
  return { code: isDenied ? GrpcCode.PermissionDenied : GrpcCode.Unknown, message: reason };
}

/** The methods whose lines are not those of any stream. */
const LOGS: ReadonlyMap<string, typeof StreamLog> = new Map<string, typeof StreamLog>([
  [WatchService.methods.Watch.path, WatchLog],
  [KVService.methods.RangeStream.path, RangeLog],
]);
