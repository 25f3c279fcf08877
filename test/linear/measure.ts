/**
 * What a parser's work is in relation to the length of its text. Processor time of this thread; the
 * least of several runs, so that a busy machine and a compilation do not count.
 */
import { HEADS, repeated, TAILS, UNITS } from "./texts.ts";

/** A parser: it is called with a text and may throw. Texts are latin1, a char a byte. */
export interface Parser {
  readonly name: string;
  readonly call: (text: string) => unknown;
  /** The longest text that reaches it; longer ones are refused before. */
  readonly maxBytes: number;
  /** What a KiB may cost where that is not LIMIT_MS_PER_KIB, for the reason given there. */
  readonly limitMsPerKib?: number;
}

/** A text's kind; its length comes later. */
export interface Kind {
  readonly unit: string;
  readonly head: string;
  readonly tail: string;
}

export interface Growth {
  readonly kind: Kind;
  readonly bytes: number;
  readonly ms: number;
  readonly msPerKib: number;
  /** Of the time in the length: 1 is linear, 2 is quadratic. */
  readonly exponent: number;
}

/** A KiB may cost this; the same figure as in the attack on servers. */
export const LIMIT_MS_PER_KIB = 1;
/** Above this the growth counts as clearly more than linear. */
export const LIMIT_EXPONENT = 1.5;
/** The first look is at a text of this length, or with bodies' parsers at the longer one. */
const LOOK_BYTES = 4096;
const LOOK_BODY_BYTES = 8192;
const BODY_BYTES = 128 * 1024;
/** What costs less than this at the first look is not looked at again. */
const SUSPECT_MS = 0.5;
const SUSPECT_MS_PER_KIB = 0.05;
/** A parser that is this slow is not asked for longer texts. */
const ENOUGH_MS = 60;
const RUNS = 3;
/** In one batch of exactMs. */
const MOST_RUNS = 200;

/**
 * All kinds: each unit alone and, between heads and tails, as often as `sharp` says; a fraction is
 * the share of units that are.
 */
export function kindsOf(sharp: number): Kind[] {
  return UNITS.flatMap((unit, i) => [
    { unit, head: "", tail: "" },
    ...Array.from({ length: Math.floor((i + 1) * sharp) - Math.floor(i * sharp) }, (_, j) => ({
      unit,
      head: HEADS[(i * 5 + j * 7 + 1) % HEADS.length],
      tail: TAILS[(i * 3 + j * 11 + 1) % TAILS.length],
    })),
  ]);
}

export function textOf({ unit, head, tail }: Kind, bytes: number): string {
  return head + repeated(unit, Math.max(1, bytes - head.length - tail.length)) + tail;
}

const lookBytes = ({ maxBytes }: Parser): number =>
  maxBytes > BODY_BYTES ? LOOK_BODY_BYTES : LOOK_BYTES;

/** Milliseconds of this thread for one call, with what an async parser does until its end. */
export async function costMs({ call }: Parser, text: string): Promise<number> {
  const before = process.threadCpuUsage();
  try {
    await call(text);
  } catch {
    // A refusal is as good as a result.
  }
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

async function leastMs(parser: Parser, text: string): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS; run++) {
    least = Math.min(least, await costMs(parser, text));
    if (least > ENOUGH_MS) break;
  }
  return least;
}

/**
 * As leastMs, by runs that together take long enough for a clock that counts in ticks of 4 ms, as
 * some kernels do.
 */
async function exactMs(parser: Parser, text: string): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let batch = 0; batch < RUNS; batch++) {
    let [ms, runs] = [0, 0];
    while (ms < ENOUGH_MS && runs < MOST_RUNS) {
      ms += await costMs(parser, text);
      runs++;
    }
    least = Math.min(least, ms / runs);
    if (least > ENOUGH_MS) break;
  }
  return least;
}

/** How a parser's time grows with a kind of text; undefined where it costs next to nothing. */
export async function growthOf(parser: Parser, kind: Kind): Promise<Growth | undefined> {
  const look = lookBytes(parser);
  const limitMs = Math.max(SUSPECT_MS, (SUSPECT_MS_PER_KIB * look) / 1024);
  // Short ones first: with what takes for ever, the long one would.
  let firstMs = 0;
  for (let bytes = look / 8; bytes <= look && firstMs <= ENOUGH_MS; bytes *= 2)
    firstMs = await costMs(parser, textOf(kind, bytes));
  if (firstMs < limitMs) return undefined;
  if (firstMs <= ENOUGH_MS && (await leastMs(parser, textOf(kind, look))) < limitMs)
    return undefined;
  const growth = await pointsOf(parser, kind, leastMs);
  return isTooMuch(growth, parser.limitMsPerKib) ? exactGrowthOf(parser, kind) : growth;
}

/** As growthOf, slower: for what looks like too much, and for figures that are shown. */
export function exactGrowthOf(parser: Parser, kind: Kind): Promise<Growth> {
  return pointsOf(parser, kind, exactMs);
}

async function pointsOf(parser: Parser, kind: Kind, timed: typeof exactMs): Promise<Growth> {
  const points: [bytes: number, ms: number][] = [];
  for (let bytes = lookBytes(parser) / 8; bytes <= parser.maxBytes; bytes *= 2) {
    const ms = await timed(parser, textOf(kind, bytes));
    points.push([bytes, ms]);
    if (ms > ENOUGH_MS) break;
  }
  const [last, first] = [points.at(-1)!, points.at(-3) ?? points[0]];
  const doublings = Math.log2(last[0] / first[0]);
  const exponent = doublings === 0 ? 2 : Math.log2(last[1] / Math.max(first[1], 0.02)) / doublings;
  return { kind, bytes: last[0], ms: last[1], msPerKib: (last[1] * 1024) / last[0], exponent };
}

/** Whether a parser's work grows beyond the length of its text, and beyond what a KiB may cost. */
export function isTooMuch(
  { msPerKib, exponent }: Growth,
  limitMsPerKib = LIMIT_MS_PER_KIB,
): boolean {
  return msPerKib > limitMsPerKib && exponent > LIMIT_EXPONENT;
}
