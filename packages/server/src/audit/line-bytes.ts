/**
 * The lines of plain calls, written as bytes: one key or range that is printable text, no further
 * fields, status OK. That is most calls, and such a line costs a third of one that is built as a
 * text (line.ts, which writes all others; both have the same bytes).
 *
 *     {"time":"..."                               of this millisecond
 *     ,"user":...,"method":...,"verdict":...,"keys"  of this client and method, remembered
 *     ..."revision":...,"ms":...}                 of this call
 */
import { fromUtf8 } from "@quorate/proto";
import type { KeyPlaces } from "./key-places.ts";
import { type AuditedCaller, callerText, MAX_SHOWN_BYTES, timeText, verdictText } from "./line.ts";
import type { AuditSink, ProvedIdentity } from "./settings.ts";
import type { KeyAccess } from "./subjects.ts";

/** Beginnings of lines that are remembered; then all are made again. */
export const MAX_KNOWN_CALLERS = 8192;
/** Bytes of a line beside its beginning and its keys, at most. */
const MOST_OTHER_BYTES = 256;
/** Numbers with more digits are left to line.ts. */
const MAX_NUMBER = 1e15;
const MAX_MICROSECONDS = 1e12;

const TEXTS = {
  end: fromUtf8('","end":"').slice(),
  revision: fromUtf8('"}],"revision":').slice(),
  noRevision: fromUtf8('"}]').slice(),
  took: fromUtf8(',"ms":').slice(),
};

const NEWLINE = 0x0a;
const BRACE = 0x7d;
const ZERO = 0x30;
const POINT = 0x2e;

/** A plain call that has ended with OK. One object serves many calls. */
export interface PlainCall {
  /** When it ended, by the monotonic clock, and how long it took. */
  endMs: number;
  tookMs: number;
  identity: ProvedIdentity | undefined;
  address: string;
  certificate: string | undefined;
  subject: string | undefined;
  /** The request, and where its key and range end are in it. */
  readonly keys: KeyPlaces;
  revision: number;
}

interface Known {
  readonly identity: ProvedIdentity | undefined;
  readonly certificate: string | undefined;
  readonly subject: string | undefined;
  readonly bytes: Uint8Array;
}

/** The party of a call, for its line. */
export function callerOfLine({
  identity,
  address,
  certificate,
  subject,
}: Pick<PlainCall, "identity" | "address" | "certificate" | "subject">): AuditedCaller {
  const { user = "", provedBy: proof = "", roles } = identity ?? {};
  return { user, proof, roles, address, certificate, subject };
}

/** The lines of plain calls of all methods. */
export class LineWriter {
  readonly #methods = new Map<string, MethodLines>();
  readonly #time: LineTime;
  #knownCount = 0;

  /** @param wallMs the wall-clock time of now */
  constructor(wallMs: () => number) {
    this.#time = new LineTime(wallMs);
  }

  /** Beginnings that are remembered. */
  get knownCount(): number {
    return this.#knownCount;
  }

  /** The lines of one method, whose calls have one key or range. */
  of(path: string, op: KeyAccess["op"]): MethodLines {
    let lines = this.#methods.get(path);
    if (lines === undefined) {
      lines = new MethodLines(path, op, this.#time, () => this.#makeSpace());
      this.#methods.set(path, lines);
    }
    return lines;
  }

  #makeSpace(): void {
    if (this.#knownCount >= MAX_KNOWN_CALLERS) {
      for (const lines of this.#methods.values()) lines.forget();
      this.#knownCount = 0;
    }
    this.#knownCount++;
  }
}

export class MethodLines {
  readonly #path: string;
  readonly #op: KeyAccess["op"];
  readonly #time: LineTime;
  readonly #makeSpace: () => void;
  /** By address. */
  readonly #known = new Map<string, Known>();

  /** @param makeSpace called before a beginning is remembered */
  constructor(path: string, op: KeyAccess["op"], time: LineTime, makeSpace: () => void) {
    this.#path = path;
    this.#op = op;
    this.#time = time;
    this.#makeSpace = makeSpace;
  }

  forget(): void {
    this.#known.clear();
  }

  /**
   * Writes the line of a call.
   * @returns false where it is not plain; true where it is written, or dropped for want of space
   */
  write(call: PlainCall, sink: Pick<AuditSink, "space" | "wrote">): boolean {
    const { keys, revision, tookMs } = call;
    if (revision > MAX_NUMBER || tookMs < 0 || tookMs * 1000 >= MAX_MICROSECONDS) return false;
    const keyBytes = keys.keyEnd - keys.keyAt;
    const endBytes = keys.endEnd - keys.endAt;
    if (keyBytes > MAX_SHOWN_BYTES || endBytes > MAX_SHOWN_BYTES) return false;
    const beginning = this.#beginning(call);
    const space = sink.space(beginning.length + keyBytes + endBytes + MOST_OTHER_BYTES);
    if (space === undefined) return true;
    const { bytes } = space;
    let next = copy(bytes, space.at, this.#time.bytes(call.endMs));
    bytes.set(beginning, next);
    next = copyPlain(bytes, next + beginning.length, keys.bytes, keys.keyAt, keys.keyEnd);
    if (next < 0) return false;
    if (endBytes > 0) {
      next = copy(bytes, next, TEXTS.end);
      next = copyPlain(bytes, next, keys.bytes, keys.endAt, keys.endEnd);
      if (next < 0) return false;
    }
    if (revision > 0) next = writeInteger(bytes, copy(bytes, next, TEXTS.revision), revision);
    else next = copy(bytes, next, TEXTS.noRevision);
    next = writeThousandths(bytes, copy(bytes, next, TEXTS.took), Math.round(tookMs * 1000));
    bytes[next++] = BRACE;
    bytes[next++] = NEWLINE;
    sink.wrote(next);
    return true;
  }

  #beginning(call: PlainCall): Uint8Array {
    const { address } = call;
    const known = this.#known.get(address);
    if (known !== undefined && isSame(known, call)) return known.bytes;
    if (known === undefined) this.#makeSpace();
    const caller = callerText(callerOfLine(call), this.#path);
    const text = `${caller}${verdictText("ok", "OK")},"keys":[{"op":"${this.#op}","key":"`;
    const bytes = fromUtf8(text).slice();
    const { identity, certificate, subject } = call;
    this.#known.set(address, { identity, certificate, subject, bytes });
    return bytes;
  }
}

function isSame(known: Known, { identity, certificate, subject }: PlainCall): boolean {
  const before = known.identity;
  if (known.certificate !== certificate || known.subject !== subject) return false;
  if (before === identity) return true;
  return (
    before?.user === identity?.user &&
    before?.provedBy === identity?.provedBy &&
    before?.roles === identity?.roles
  );
}

/** The beginning of all lines of one millisecond: the wall clock is not asked for each call. */
class LineTime {
  readonly #wallMs: () => number;
  #untilMs = Number.NEGATIVE_INFINITY;
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(wallMs: () => number) {
    this.#wallMs = wallMs;
  }

  /** @param nowMs the monotonic time of now */
  bytes(nowMs: number): Uint8Array {
    if (nowMs < this.#untilMs) return this.#bytes;
    this.#untilMs = nowMs + 1;
    this.#bytes = fromUtf8(`{"time":"${timeText(this.#wallMs())}"`).slice();
    return this.#bytes;
  }
}

/** Copies what is shown in JSON as it is: ASCII that needs no escape. Negative for other bytes. */
function copyPlain(into: Uint8Array, at: number, from: Uint8Array, start: number, end: number) {
  let next = at;
  for (let i = start; i < end; i++) {
    const byte = from[i];
    if (byte < 0x20 || byte > 0x7e || byte === 0x22 || byte === 0x5c) return -1;
    into[next++] = byte;
  }
  return next;
}

/** Copies some bytes; of so few, a loop is as fast as `set`. */
function copy(into: Uint8Array, at: number, bytes: Uint8Array): number {
  const { length } = bytes;
  for (let i = 0; i < length; i++) into[at + i] = bytes[i];
  return at + length;
}

/** @param value a whole number from 0 to MAX_NUMBER */
function writeInteger(into: Uint8Array, at: number, value: number): number {
  let digits = 1;
  for (let limit = 10; value >= limit; limit *= 10) digits++;
  let left = value;
  for (let i = at + digits - 1; i >= at; i--) {
    const rest = Math.floor(left / 10);
    into[i] = ZERO + (left - rest * 10);
    left = rest;
  }
  return at + digits;
}

/** A number of thousandths as JavaScript prints it: 421 as 0.421, 1500 as 1.5. */
function writeThousandths(into: Uint8Array, at: number, thousandths: number): number {
  const whole = Math.floor(thousandths / 1000);
  let next = writeInteger(into, at, whole);
  let rest = thousandths - whole * 1000;
  if (rest === 0) return next;
  into[next++] = POINT;
  for (let unit = 100; rest > 0; unit /= 10) {
    const digit = Math.floor(rest / unit);
    into[next++] = ZERO + digit;
    rest -= digit * unit;
  }
  return next;
}
