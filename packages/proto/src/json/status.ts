/** gRPC statuses in JSON, as google.rpc.Status: the error bodies of etcd's gateway. */
import { concat, fromLatin1, fromUtf8 } from "../wire/bytes.ts";
import { putDecimal } from "./decimal.ts";
import { MAX_ESCAPE_BYTES, putEscaped } from "./escape.ts";

const CODE: Uint8Array = fromLatin1('"code":').slice();
const MESSAGE: Uint8Array = fromLatin1('"message":"').slice();
/** Brackets, both names, a code of up to ten digits. */
const FRAME_BYTES = 40;

/**
 * The body of a unary error: `{"code":3,"message":"TEXT"}`. A default value is left out.
 * @param code the gRPC status code, 0 to 16
 */
export function statusJson(code: number, message: string): Uint8Array {
  return status(code, message, false);
}

/** The last line of a stream that failed: `{"error":{"code":3,"message":"TEXT"}}` and a newline. */
export function errorChunkJson(code: number, message: string): Uint8Array {
  return concat([fromLatin1('{"error":'), status(code, message, true), fromLatin1("}\n")]);
}

function status(code: number, message: string, html: boolean): Uint8Array {
  const text = fromUtf8(message);
  const out = new Uint8Array(FRAME_BYTES + text.length * MAX_ESCAPE_BYTES);
  let at = 0;
  out[at++] = 0x7b;
  if (code !== 0) {
    out.set(CODE, at);
    at = putDecimal(out, at + CODE.length, code);
  }
  if (text.length > 0) {
    if (code !== 0) out[at++] = 0x2c;
    out.set(MESSAGE, at);
    at = putEscaped(out, at + MESSAGE.length, text, 0, text.length, html);
    out[at++] = 0x22;
  }
  out[at++] = 0x7d;
  return out.subarray(0, at);
}
