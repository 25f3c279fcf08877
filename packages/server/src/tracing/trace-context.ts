/**
 * Where a call's trace comes from: the metadata "traceparent" (W3C Trace Context, level 1),
 *
 *     00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *     version, trace, the caller's span, flags of which the lowest bit says that the trace is
 *     sampled
 */

/** A trace and the span in it under which others go. Ids are what the wire has: 128 and 64 bits. */
export interface TraceContext {
  readonly traceHigh: bigint;
  readonly traceLow: bigint;
  readonly spanId: bigint;
  readonly isSampled: boolean;
}

const TRACEPARENT =
  /^([0-9a-f]{2})-([0-9a-f]{16})([0-9a-f]{16})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads a traceparent; undefined for one that is not well formed, which is as if there were none.
 */
export function parseTraceparent(text: string): TraceContext | undefined {
  const match = TRACEPARENT.exec(text.trim());
  if (match === null) return undefined;
  const [, version, high, low, span, flags, rest] = match;
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
