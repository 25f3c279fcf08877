/**
 * Serves a watch: a response that goes on (apiserver: handlers/watch.go).
 *
 *     storage.watch -> Watch -> listener.event -> frame -> Call.send
 *                   <- resume <- drained <-------------- client reads
 *
 * A WebSocket is another output of the same frames. The watch pauses while the client does not
 * read; the cache ends watches that stay behind.
 */
import type {
  ApiError,
  RestListOptions,
  Watch,
  WatchEvent,
  WatchListener,
} from "@quorate/kube-storage";
import { notAcceptable, storageWith } from "@quorate/kube-storage";
import { includeObjectOf } from "./negotiation.ts";
import { apiErrorOf, type HandlerDeps, type ResourceCall } from "./resource-call.ts";
import { type FrameEncoder, frameEncoder } from "./watch-frames.ts";
import { type WatchOutput, watchOutput } from "./watch-output.ts";

const STREAM_TYPES = [
  "application/json;stream=watch",
  "application/vnd.kubernetes.protobuf;stream=watch",
];

/** Resolves when the watch is over. Rejects with ApiError where it does not begin. */
export async function serveWatch(
  given: ResourceCall,
  deps: HandlerDeps,
  options: RestListOptions,
): Promise<void> {
  const { call, resource, ctx, form, chaos } = given;
  chaos?.checkWatch();
  if (form.encoding === "yaml") throw notAcceptable(STREAM_TYPES);
  const include = includeObjectOf(call.query.first("includeObject"));
  const encoder = frameEncoder(resource, form, include, {
    frames: deps.frames,
    nowMs: () => deps.clock.wallMs(),
  });
  const timeoutMs = watchTimeoutMs(options.timeoutSeconds, deps);
  const served = new ServedWatch(given, deps, encoder, watchOutput(call, deps.openSocket));
  const release = deps.watches.open(call, resource, () => served.end(undefined));
  try {
    const timeoutSeconds = timeoutMs / 1000;
    const storage = storageWith(resource.storage, "watch");
    const gone = chaos?.gone(options);
    if (gone !== undefined) throw gone;
    const watch = await storage.watch(ctx, { ...options, timeoutSeconds });
    const late = chaos?.watched(watch, options, () => call.abort());
    await served.run(late ?? watch, timeoutMs);
  } finally {
    release();
  }
}

/** The client's choice, or a random time so that watches do not all end at once. */
function watchTimeoutMs(seconds: number | undefined, { minWatchMs, random }: HandlerDeps): number {
  if (seconds !== undefined && seconds > 0) return Math.min(seconds * 1000, 2 ** 31 - 1);
  return minWatchMs * (1 + random.unit());
}

class ServedWatch implements WatchListener {
  readonly #given: ResourceCall;
  readonly #deps: HandlerDeps;
  readonly #encoder: FrameEncoder;
  readonly #output: WatchOutput;
  readonly #over = Promise.withResolvers<void>();
  #watch: Watch | undefined;
  #isOver = false;

  constructor(given: ResourceCall, deps: HandlerDeps, encoder: FrameEncoder, output: WatchOutput) {
    this.#output = output;
    this.#given = given;
    this.#deps = deps;
    this.#encoder = encoder;
  }

  /** Sends the events of `watch` until it, the client, the server or the time ends. */
  async run(watch: Watch, timeoutMs: number): Promise<void> {
    const { call } = this.#given;
    this.#watch = watch;
    if (this.#isOver || !this.#output.start(this.#encoder.contentType)) {
      watch.stop();
      return;
    }
    const timer = this.#deps.clock.after(timeoutMs, () => this.end(undefined));
    call.whenOver(() => this.end(undefined));
    if (!this.#isOver) watch.start(this);
    await this.#over.promise;
    timer.cancel();
  }

  event(event: WatchEvent): boolean {
    if (this.#isOver) return false;
    let frame: Uint8Array;
    try {
      frame = this.#encoder.event(event);
    } catch (error) {
      this.end(apiErrorOf(error, this.#deps.logger, this.#given.call));
      return false;
    }
    this.#deps.watches.sent(this.#given.resource, frame.length);
    return this.#output.send(frame, () => {
      if (!this.#isOver) this.#watch?.resume();
    });
  }

  ended(error: ApiError | undefined): void {
    this.end(error);
  }

  /** Ends the response, after an event of type ERROR where there is an error. */
  end(error: ApiError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watch?.stop();
    const { call } = this.#given;
    if (call.hasResponse) {
      if (error !== undefined) this.#output.send(this.#encoder.error(error.status), () => {});
      this.#output.end();
    }
    this.#over.resolve();
  }
}
