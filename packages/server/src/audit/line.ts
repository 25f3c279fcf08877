/**
 * One line of the audit log: a JSON object for one call. What a key or a name of a client puts into
 * it is bounded and escaped, so that a client cannot write lines of its own.
 *
 *     {"time":"2026-03-01T12:00:00.123Z","user":"ann","proof":"token","address":"10.0.0.7:41234",
 *      "method":"etcdserverpb.KV/Put","verdict":"ok","code":"OK",
 *      "keys":[{"op":"put","key":"app/1"}],"revision":17,"ms":0.42}
 *
 * (one line in the file)
 */
import { toLatin1, toUtf8 } from "@quorate/proto";
import type { KeyAccess, Subject } from "./subjects.ts";
import type { Verdict } from "./verdict.ts";

/** Keys of one call that are listed; how many more there are is a number. */
export const MAX_LISTED_KEYS = 16;
/** Bytes of a key, and characters of another text, that are shown. */
export const MAX_SHOWN_BYTES = 512;

/** The party that called. */
export interface AuditedCaller {
  /** Empty while authentication is off, and for a caller without an identity. */
  readonly user: string;
  /** "token" or "certificate"; empty for a caller without an identity. */
  readonly proof: string;
  /** The roles that its token lists; undefined for a user of the store. */
  readonly roles?: readonly string[] | undefined;
  /** "host:port". */
  readonly address: string;
  /** The name of the client's certificate. */
  readonly certificate: string | undefined;
  /** The whole subject of it. */
  readonly subject?: string | undefined;
}

/** A call that has ended. */
export interface AuditedCall {
  readonly wallMs: number;
  readonly caller: AuditedCaller;
  /** The method's path. */
  readonly path: string;
  readonly subject: Subject;
  /** The revision of the store in the response; 0 where there is none. */
  readonly revision: number;
  readonly verdict: Verdict;
  /** The gRPC code by name. */
  readonly code: string;
  readonly tookMs: number;
}

/** Hashes a value for the log. */
export type HashValue = (value: Uint8Array) => string;

let lastMs = Number.NaN;
let lastText = "";

/** A time as lines have it. Calls of one millisecond share the text. */
export function timeText(wallMs: number): string {
  const ms = Math.floor(wallMs);
  if (ms !== lastMs) {
    lastMs = ms;
    lastText = new Date(ms).toISOString();
  }
  return lastText;
}

/**
 * The line, without its end.
 * @param hashValue for level "request"; undefined for level "metadata"
 */
export function auditLine(call: AuditedCall, hashValue: HashValue | undefined): string {
  let line = `{"time":"${timeText(call.wallMs)}"${callerText(call.caller, call.path)}`;
  line += verdictText(call.verdict, call.code);
  const { accesses, fields } = call.subject;
  if (accesses.length > 0) line += `,"keys":${keysText(accesses, hashValue)}`;
  if (accesses.length > MAX_LISTED_KEYS) line += `,"moreKeys":${accesses.length - MAX_LISTED_KEYS}`;
  if (fields.length > 0 && (hashValue !== undefined || areShown(accesses)))
    line += `,"request":${fieldsText(fields)}`;
  if (call.revision > 0) line += `,"revision":${call.revision}`;
  return `${line},"ms":${Math.round(call.tookMs * 1000) / 1000}}`;
}

/** The fields of how a call ended. */
export function verdictText(verdict: Verdict, code: string): string {
  return `,"verdict":"${verdict}","code":"${code}"`;
}

/** The fields of the caller and the method. */
export function callerText(caller: AuditedCaller, path: string): string {
  let text = "";
  if (caller.user !== "") text += `,"user":${quoted(caller.user)},"proof":"${caller.proof}"`;
  if (caller.roles !== undefined)
    text += `,"roles":[${caller.roles.slice(0, MAX_LISTED_KEYS).map(quoted).join(",")}]`;
  text += `,"address":${quoted(caller.address)}`;
  if (caller.certificate !== undefined) text += `,"certificate":${quoted(caller.certificate)}`;
  // A subject that is a name alone is shown by it.
  if (caller.subject !== undefined && caller.subject !== `CN=${caller.certificate}`)
    text += `,"subject":${quoted(caller.subject)}`;
  return `${text},"method":"${path.slice(1)}"`;
}

/** Of requests about keys, fields are shown at level "request" alone. */
function areShown(accesses: readonly KeyAccess[]): boolean {
  return accesses.every(({ op }) => op === "grant" || op === "revoke");
}

function keysText(accesses: readonly KeyAccess[], hashValue: HashValue | undefined): string {
  let text = "[";
  for (const [i, { op, key, end, value }] of accesses.slice(0, MAX_LISTED_KEYS).entries()) {
    text += `${i === 0 ? "" : ","}{"op":"${op}",${keyText("key", key)}`;
    if (end.length > 0) text += `,${keyText("end", end)}`;
    if (hashValue !== undefined && value !== undefined)
      text += `,"valueBytes":${value.length},"valueHash":"${hashValue(value)}"`;
    text += "}";
  }
  return `${text}]`;
}

const PLAIN = /^[ !#-[\]-~]*$/;

/** A key as text where it is text, else in hexadecimal; a long one is cut. */
function keyText(name: string, bytes: Uint8Array): string {
  const isCut = bytes.length > MAX_SHOWN_BYTES;
  const shown = isCut ? bytes.subarray(0, MAX_SHOWN_BYTES) : bytes;
  const text = toLatin1(shown);
  const cut = isCut ? `,"${name}Bytes":${bytes.length}` : "";
  if (PLAIN.test(text)) return `"${name}":"${text}"${cut}`;
  const decoded = utf8Text(shown);
  if (decoded !== undefined) return `"${name}":${JSON.stringify(decoded)}${cut}`;
  return `"${name}Hex":"${hex(text)}"${cut}`;
}

/** Bytes as text, or undefined where they are no UTF-8. */
function utf8Text(bytes: Uint8Array): string | undefined {
  const text = toUtf8(bytes);
  return text.includes("\ufffd") ? undefined : text;
}

function hex(latin1: string): string {
  let text = "";
  for (let i = 0; i < latin1.length; i++)
    text += latin1.charCodeAt(i).toString(16).padStart(2, "0");
  return text;
}

function quoted(text: string): string {
  const shown = text.length > MAX_SHOWN_BYTES ? text.slice(0, MAX_SHOWN_BYTES) : text;
  return PLAIN.test(shown) ? `"${shown}"` : JSON.stringify(shown);
}

function fieldsText(fields: Subject["fields"]): string {
  const parts = fields.map(([name, value]) => {
    const text =
      typeof value === "string"
        ? quoted(value)
        : Array.isArray(value)
          ? `[${value.slice(0, MAX_LISTED_KEYS).map(quoted).join(",")}]`
          : String(value);
    return `"${name}":${text}`;
  });
  return `{${parts.join(",")}}`;
}
