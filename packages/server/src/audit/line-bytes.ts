/**
 * The lines of plain calls, written as bytes: one key or range that is printable text, no further
 * fields, status OK. That is most calls, and such a line costs a third of one that is built as a
 * text (line.ts, which writes all others; both have the same bytes).
 *
 *     {"time":"..."          of this millisecond
 *     ,"user":...,"method":  of this client and method, remembered
 *     ,"keys":[...]...       of this call
 */
import { fromUtf8 } from "@quorate/proto";
import { type AuditedCaller, callerText, MAX_SHOWN_BYTES, timeText } from "./line.ts";
import type { LineSpace } from "./settings.ts";
import type { KeyAccess } from "./subjects.ts";

/** Beginnings of lines that are remembered; then all are made again. */
export const MAX_KNOWN_CALLERS = 8192;
/** Bytes of a line beside its beginning and its keys, at most. */
const MOST_OTHER_BYTES = 256;
/** Numbers with more digits are left to line.ts. */
const MAX_NUMBER = 1e15;
const MAX_MICROSECONDS = 1e12;

const TEXTS = {
  openKeys: fromUtf8(',"keys":[{"op":"'),
  key: fromUtf8('","key":"'),
  end: fromUtf8('","end":"'),
  closeKeys: fromUtf8('"}]'),
  revision: fromUtf8(',"revision":'),
  verdict: fromUtf8(',"verdict":"ok","code":"OK","ms":'),
};
const OPS = new Map<KeyAccess["op"], Uint8Array>(
  (["get", "put", "delete", "watch", "compare", "grant", "revoke", "use"] as const).map((op) => [
    op,
    fromUtf8(op),
  ]),
);

const NEWLINE = 0x0a;
const BRACE = 0x7d;
const ZERO = 0x30;
const POINT = 0x2e;

/** A plain call that has ended with OK. */
export interface PlainCall {
  readonly wallMs: number;
  readonly tookMs: number;
  readonly caller: AuditedCaller;
  readonly path: string;
  readonly access: KeyAccess;
  readonly revision: number;
}

interface Known {
  readonly caller: AuditedCaller;
  readonly bytes: Uint8Array;
}

/** Whether bytes are shown in JSON as they are: ASCII that needs no escape. */
function isPlain(bytes: Uint8Array): boolean {
  if (bytes.length > MAX_SHOWN_BYTES) return false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte < 0x20 || byte > 0x7e || byte === 0x22 || byte === 0x5c) return false;
  }
  return true;
}

/** True for a call whose line can be written as bytes. */
export function isPlainCall(access: KeyAccess, revision: number, tookMs: number): boolean {
  return (
    isPlain(access.key) &&
    isPlain(access.end) &&
    revision <= MAX_NUMBER &&
    tookMs >= 0 &&
    tookMs * 1000 < MAX_MICROSECONDS
  );
}

export class LineWriter {
  /** By address, then by method. */
  readonly #known = new Map<string, Map<string, Known>>();
  #knownCount = 0;
  #timeMs = Number.NaN;
  #time: Uint8Array = new Uint8Array(0);

  /** Beginnings that are remembered. */
  get knownCount(): number {
    return this.#knownCount;
  }

  /** The bytes that a line may take, at most. */
  mostBytes({ caller, path, access }: PlainCall): number {
    const begin = this.#beginning(caller, path).length;
    return begin + access.key.length + access.end.length + MOST_OTHER_BYTES;
  }

  /** Writes a line and its end. @returns the place behind it */
  write({ bytes, at }: LineSpace, call: PlainCall): number {
    const { access, revision, tookMs } = call;
    let next = copy(bytes, at, this.#timeBytes(call.wallMs));
    next = copy(bytes, next, this.#beginning(call.caller, call.path));
    next = copy(bytes, next, TEXTS.openKeys);
    next = copy(bytes, next, OPS.get(access.op)!);
    next = copy(bytes, next, TEXTS.key);
    next = copy(bytes, next, access.key);
    if (access.end.length > 0) {
      next = copy(bytes, next, TEXTS.end);
      next = copy(bytes, next, access.end);
    }
    next = copy(bytes, next, TEXTS.closeKeys);
    if (revision > 0) next = writeInteger(bytes, copy(bytes, next, TEXTS.revision), revision);
    next = writeThousandths(bytes, copy(bytes, next, TEXTS.verdict), Math.round(tookMs * 1000));
    bytes[next++] = BRACE;
    bytes[next++] = NEWLINE;
    return next;
  }

  #timeBytes(wallMs: number): Uint8Array {
    const ms = Math.floor(wallMs);
    if (ms !== this.#timeMs) {
      this.#timeMs = ms;
      this.#time = fromUtf8(`{"time":"${timeText(ms)}"`);
    }
    return this.#time;
  }

  #beginning(caller: AuditedCaller, path: string): Uint8Array {
    let ofAddress = this.#known.get(caller.address);
    const found = ofAddress?.get(path);
    if (found !== undefined && isSame(found.caller, caller)) return found.bytes;
    if (this.#knownCount >= MAX_KNOWN_CALLERS) {
      this.#known.clear();
      this.#knownCount = 0;
      ofAddress = undefined;
    }
    if (ofAddress === undefined) {
      ofAddress = new Map();
      this.#known.set(caller.address, ofAddress);
    }
    const bytes = fromUtf8(callerText(caller, path));
    if (!ofAddress.has(path)) this.#knownCount++;
    ofAddress.set(path, { caller, bytes });
    return bytes;
  }
}

function isSame(a: AuditedCaller, b: AuditedCaller): boolean {
  return (
    a.user === b.user &&
    a.proof === b.proof &&
    a.roles === b.roles &&
    a.certificate === b.certificate
  );
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
