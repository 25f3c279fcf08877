/**
 * The way to the cluster: one connection to one member, and to the next one when that fails (etcd
 * spreads calls over all members). What is retried follows etcd's Go client (client/v3/retry.go): a
 * read as long as the status is UNAVAILABLE, a write only if it was certainly not sent.
 */
import { Backoff, type BackoffOptions, type Clock, type Timer } from "@quorate/host";
import { defined, GrpcCode } from "@quorate/proto";
import {
  type CallContext,
  type ClientCall,
  type ClientConnection,
  type Status,
  StatusError,
} from "@quorate/rpc";
import { type Metadata, passedOn } from "./caller.ts";
import {
  type MemberChannel,
  type MemberChannels,
  onceConnected,
  TOO_MANY_OPEN_CALLS,
} from "./member-channel.ts";
import { UpstreamStream, type UpstreamStreamListener } from "./upstream-stream.ts";

/** How the calls of one method are made. */
export interface MethodRules {
  readonly path: string;
  /** A second call does no harm: it is retried also if the first was sent. */
  readonly isRepeatable: boolean;
}

/** As in etcd's Go client. */
const MAX_ATTEMPTS = 100;
/** Pauses after a round through all members, and before a stream is opened again. */
export const REOPEN: BackoffOptions = { firstMs: 25, mostMs: 1000 };
/** A call without a deadline is retried for so long. */
const DEFAULT_RETRY_MS = 5000;
/**
 * A member that was silent for so long while a call waited in vain is left: it may be paused or cut
 * off, which no error says.
 */
export const SILENT_MEMBER_MS = 2000;
/** Calls that wait for responses at one time; more are refused. */
export const MAX_PENDING_CALLS = 65_536;

export class Upstream implements MemberChannels {
  readonly clock: Clock;
  #channels: readonly MemberChannel[];
  readonly #maxRequestBytes: number;
  #current: number;
  #pending = 0;
  #isClosed = false;

  /**
   * @param first index of the member that is used first
   * @param maxRequestBytes longer requests are refused
   */
  constructor(
    channels: readonly MemberChannel[],
    clock: Clock,
    first = 0,
    maxRequestBytes = Number.POSITIVE_INFINITY,
  ) {
    if (channels.length === 0) throw new RangeError("no endpoints");
    this.#maxRequestBytes = maxRequestBytes;
    this.#channels = channels;
    this.clock = clock;
    this.#current = first % channels.length;
  }

  /** The member in use. */
  get channel(): MemberChannel {
    return defined(this.#channels[this.#current], "the channel");
  }

  get size(): number {
    return this.#channels.length;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The members. */
  get channels(): readonly MemberChannel[] {
    return this.#channels;
  }

  /**
   * Uses other members from now on. The one in use stays if it is among them; those that are not
   * are closed, which ends their streams.
   */
  replace(channels: readonly MemberChannel[]): void {
    if (channels.length === 0) return;
    const { channel } = this;
    const old = this.#channels;
    this.#channels = channels;
    this.#current = Math.max(0, channels.indexOf(channel));
    for (const one of old) if (!channels.includes(one)) one.close();
  }

  /** Moves to the next member, if `channel` is the one in use. */
  leave(channel: MemberChannel): void {
    if (this.channel === channel) this.#current = (this.#current + 1) % this.#channels.length;
  }

  /**
   * Makes a call for a client, with its deadline and metadata; ends it when the client cancels.
   * Rejects with StatusError.
   */
  unary(rules: MethodRules, request: Uint8Array, context: CallContext): Promise<Uint8Array> {
    return this.call(rules, request, {
      metadata: passedOn(context),
      deadlineMs: context.deadlineMs,
      onCancel: (listener) => context.onCancel(listener),
    });
  }

  /** Makes a call. Rejects with StatusError. */
  call(rules: MethodRules, request: Uint8Array, options: UnaryOptions): Promise<Uint8Array> {
    if (this.#pending >= MAX_PENDING_CALLS) {
      const message = `more than ${MAX_PENDING_CALLS} calls wait for the cluster`;
      return Promise.reject(new StatusError(GrpcCode.ResourceExhausted, message));
    }
    if (request.length > this.#maxRequestBytes) {
      // grpc-go's text.
      const message = `trying to send message larger than max (${request.length} vs. ${this.#maxRequestBytes})`;
      return Promise.reject(new StatusError(GrpcCode.ResourceExhausted, message));
    }
    this.#pending++;
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.#pending--;
        settle();
      };
      new UnaryCall(this, rules, request, options, {
        resolve: (bytes) => end(() => resolve(bytes)),
        reject: (status) => end(() => reject(new StatusError(status.code, status.message))),
      }).start();
    });
  }

  /** Opens a stream at the member in use, or at the first of the others that can be reached. */
  stream(path: string, metadata: Metadata, listener: UpstreamStreamListener): UpstreamStream {
    const stream = new UpstreamStream(this, { path, metadata, timeoutMs: undefined }, listener);
    stream.open();
    return stream;
  }

  /** Ends all connections; calls fail. */
  close(): void {
    this.#isClosed = true;
    for (const channel of this.#channels) channel.close();
  }
}

/** What a unary call needs besides its request. */
export interface UnaryOptions {
  readonly metadata: Metadata;
  /** The clock's monotonic milliseconds; undefined for none. */
  readonly deadlineMs?: number | undefined;
  /** Registers what is to run when the caller gives up. */
  readonly onCancel?: (listener: () => void) => void;
}

interface UnaryEnd {
  resolve(bytes: Uint8Array): void;
  reject(status: Status): void;
}

/** One call with its retries. */
class UnaryCall {
  readonly #upstream: Upstream;
  readonly #rules: MethodRules;
  readonly #request: Uint8Array;
  readonly #options: UnaryOptions;
  readonly #end: UnaryEnd;
  #call: ClientCall | undefined;
  /** Where the call was begun last, and when. */
  #place:
    | {
        readonly channel: MemberChannel;
        readonly connection: ClientConnection;
        readonly fromMs: number;
      }
    | undefined;
  #response: Uint8Array | undefined;
  #pause: Timer | undefined;
  readonly #backoff = new Backoff(REOPEN);
  #attempts = 0;
  #endMs = 0;
  #isOver = false;

  constructor(
    upstream: Upstream,
    rules: MethodRules,
    request: Uint8Array,
    options: UnaryOptions,
    end: UnaryEnd,
  ) {
    this.#upstream = upstream;
    this.#rules = rules;
    this.#request = request;
    this.#options = options;
    this.#end = end;
  }

  start(): void {
    this.#options.onCancel?.(() => this.#cancelled());
    if (!this.#isOver) this.#attempt();
  }

  #attempt(): void {
    this.#attempts++;
    const { channel } = this.#upstream;
    onceConnected(
      channel,
      (connection) => {
        if (!this.#isOver) this.#begin(channel, connection);
      },
      (error) => this.#failed(channel, error, false),
    );
  }

  #begin(channel: MemberChannel, connection: ClientConnection): void {
    const { deadlineMs, metadata } = this.#options;
    const timeoutMs =
      deadlineMs === undefined ? undefined : deadlineMs - this.#upstream.clock.monotonicMs();
    const call = connection.call(
      { path: this.#rules.path, metadata, timeoutMs },
      {
        message: (bytes) => {
          this.#response ??= bytes;
        },
        ended: (status, wasSent) => this.#ended(channel, status, wasSent),
      },
    );
    if (call === undefined) {
      this.#over(TOO_MANY_OPEN_CALLS);
      return;
    }
    this.#call = call;
    this.#place = { channel, connection, fromMs: this.#upstream.clock.monotonicMs() };
    call.send(this.#request, true);
  }

  #ended(channel: MemberChannel, status: Status, wasSent: boolean): void {
    this.#call = undefined;
    if (status.code !== GrpcCode.OK) {
      this.#failed(channel, status, wasSent);
      return;
    }
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#response !== undefined) this.#end.resolve(this.#response);
    else
      this.#end.reject({
        code: GrpcCode.Internal,
        message: "server closed the stream without a response",
      });
  }

  #failed(channel: MemberChannel, status: Status, wasSent: boolean): void {
    if (this.#isOver) return;
    this.#response = undefined;
    if (status.code === GrpcCode.Unavailable) this.#upstream.leave(channel);
    else if (status.code === GrpcCode.DeadlineExceeded) this.#leaveIfSilent();
    const { clock, size, isClosed } = this.#upstream;
    const nowMs = clock.monotonicMs();
    if (this.#endMs === 0) this.#endMs = this.#options.deadlineMs ?? nowMs + DEFAULT_RETRY_MS;
    // A member that speaks for the cluster (no leader) is asked once; then each other one is.
    const most = status.message.startsWith("etcdserver:") ? size : MAX_ATTEMPTS;
    const mayRetry =
      status.code === GrpcCode.Unavailable &&
      (this.#rules.isRepeatable || !wasSent) &&
      this.#attempts < most &&
      !isClosed;
    if (!mayRetry) {
      this.#over(status);
      return;
    }
    if (this.#attempts % size !== 0) {
      this.#attempt();
      return;
    }
    const pauseMs = this.#backoff.nextMs();
    if (nowMs + pauseMs >= this.#endMs) this.#over(status);
    else this.#pause = clock.after(pauseMs, () => this.#attempt());
  }

  #over(status: Status): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#end.reject(status);
  }

  /** Leaves a member that has sent nothing since long before the client gave up. */
  #leaveIfSilent(): void {
    if (this.#place === undefined) return;
    const { channel, connection, fromMs } = this.#place;
    const heardMs = Math.max(fromMs, connection.lastReadMs);
    if (this.#upstream.clock.monotonicMs() - heardMs >= SILENT_MEMBER_MS)
      this.#upstream.leave(channel);
  }

  #cancelled(): void {
    this.#pause?.cancel();
    if (this.#call !== undefined) this.#leaveIfSilent();
    this.#call?.cancel();
    this.#over({ code: GrpcCode.Canceled, message: "context canceled" });
  }
}
