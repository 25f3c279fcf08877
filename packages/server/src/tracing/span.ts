/** Spans: what was done for how long, and under what, of the traces that are sampled. */
import type { Clock, Random } from "@quorate/host";

/** An attribute's value: a number is a whole one. */
export type AttributeValue = string | number | bigint | boolean;
export type Attributes = readonly (readonly [key: string, value: AttributeValue])[];

export interface SpanEvent {
  readonly name: string;
  readonly timeUs: number;
  readonly attributes: Attributes;
}

/** A span that is under way, or has ended. Times are in microseconds since 1970. */
export interface Span extends TraceContext {
  readonly parentSpanId: bigint | undefined;
  readonly name: string;
  readonly kind: "server" | "internal";
  readonly startUs: number;
  endUs: number;
  readonly attributes: (readonly [key: string, value: AttributeValue])[];
  readonly events: SpanEvent[];
  /** Why it failed by its server's doing; undefined where it did not. */
  error: string | undefined;
}

/** More of one span are dropped (as OpenTelemetry's limit is). */
export const MAX_SPAN_EVENTS = 128;
/** Longer texts are cut. */
export const MAX_ATTRIBUTE_CHARS = 1024;

/** The wall's time may be off by this much before it is followed. */
const MAX_CLOCK_DRIFT_MS = 20;

export interface TracerDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Takes spans that have ended. */
  ended(span: Span): void;
}

export class Tracer {
  readonly #deps: TracerDeps;
  readonly #isSampled: (traceLow: bigint) => boolean;
  readonly #beginsTraces: boolean;
  #offsetMs = 0;

  /**
   * @param samplingRate how many of a million traces that begin here are kept; of those that
   * callers began, they decide.
   */
  constructor(samplingRate: number, deps: TracerDeps) {
    this.#deps = deps;
    this.#isSampled = ratioSampler(samplingRate);
    this.#beginsTraces = samplingRate > 0;
  }

  /**
   * Begins the span of a call; undefined where its trace is not sampled. @param traceparent the
   * call's, if it has one
   */
  serve(name: string, traceparent: string | undefined, attributes: Attributes): Span | undefined {
    const caller = traceparent === undefined ? undefined : parseTraceparent(traceparent);
    if (caller !== undefined)
      return caller.isSampled
        ? this.#begin(name, "server", caller, caller.spanId, attributes)
        : undefined;
    if (!this.#beginsTraces) return undefined;
    const { random } = this.#deps;
    const traceLow = random.uint64();
    if (!this.#isSampled(traceLow)) return undefined;
    return this.#begin(
      name,
      "server",
      { traceHigh: random.uint64(), traceLow },
      undefined,
      attributes,
    );
  }

  /** Begins a span within another. */
  within(parent: Span, name: string, attributes: Attributes): Span {
    return this.#begin(name, "internal", parent, parent.spanId, attributes);
  }

  /** Notes that something happened. */
  event(span: Span, name: string, attributes: Attributes = []): void {
    if (span.events.length < MAX_SPAN_EVENTS)
      span.events.push({ name, timeUs: this.#nowUs(), attributes });
  }

  /** Ends a span and hands it on. */
  end(span: Span): void {
    span.endUs = this.#nowUs();
    this.#deps.ended(span);
  }

  #begin(
    name: string,
    kind: Span["kind"],
    trace: Pick<TraceContext, "traceHigh" | "traceLow">,
    parentSpanId: bigint | undefined,
    attributes: Attributes,
  ): Span {
    const { traceHigh, traceLow } = trace;
    const spanId = this.#deps.random.uint64() || 1n;
    const startUs = this.#nowUs();
    const own = [...attributes];
    return {
      traceHigh,
      traceLow,
      spanId,
      isSampled: true,
      parentSpanId,
      name,
      kind,
      startUs,
      endUs: startUs,
      attributes: own,
      events: [],
      error: undefined,
    };
  }

  /**
   * The wall's time with the fraction of the monotonic clock: spans of a millisecond have a length.
   * Follows the wall where it jumps.
   */
  #nowUs(): number {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    const wallMs = clock.wallMs();
    if (Math.abs(wallMs - nowMs - this.#offsetMs) > MAX_CLOCK_DRIFT_MS)
      this.#offsetMs = wallMs - nowMs;
    return Math.round((this.#offsetMs + nowMs) * 1000);
  }
}

/** A trace and the span in it under which others go. Ids are what the wire has: 128 and 64 bits. */
interface TraceContext {
  readonly traceHigh: bigint;
  readonly traceLow: bigint;
  readonly spanId: bigint;
  readonly isSampled: boolean;
}

const TRACEPARENT =
  /^([0-9a-f]{2})-([0-9a-f]{16})([0-9a-f]{16})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Where a call's trace comes from: the metadata "traceparent" (W3C Trace Context, level 1),
 *
 *     00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *     version, trace, the caller's span, flags of which the lowest bit says that the trace is
 *     sampled
 *
 * Reads a traceparent; undefined for one that is not well formed, which is as if there were none.
 */
export function parseTraceparent(text: string): TraceContext | undefined {
  const match = TRACEPARENT.exec(text.trim());
  if (match === null) return undefined;
  const [, version, high, low, span, flags = "", rest] = match;
  // A later version may say more, this one may not; "ff" is none.
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  const context = {
    traceHigh: BigInt(`0x${high}`),
    traceLow: BigInt(`0x${low}`),
    spanId: BigInt(`0x${span}`),
    isSampled: (Number.parseInt(flags, 16) & 1) === 1,
  };
  return (context.traceHigh === 0n && context.traceLow === 0n) || context.spanId === 0n
    ? undefined
    : context;
}

/**
 * Decides which traces that begin here are kept: `perMillion` of a million, by the trace's id, so
 * that all members decide alike.
 */
export function ratioSampler(perMillion: number): (traceLow: bigint) => boolean {
  if (perMillion <= 0) return () => false;
  if (perMillion >= 1_000_000) return () => true;
  const bound = (BigInt(perMillion) * (1n << 63n)) / 1_000_000n;
  return (traceLow) => traceLow >> 1n < bound;
}
