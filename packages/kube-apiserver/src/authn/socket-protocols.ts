/**
 * WebSockets of browsers, which cannot set Authorization: the token is one of the subprotocols
 * (apiserver: pkg/authentication/request/websocket/protocol.go). Another one must be there, which
 * the response names.
 *
 *     Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.TOKEN, json.k8s.io
 */
import type { HttpHead } from "@quorate/host";
import { toUtf8, writeFromBase64 } from "@quorate/proto";

export const TOKEN_PREFIX = "base64url.bearer.authorization.k8s.io.";

export interface SocketProtocols {
  /** Undefined without a token. */
  readonly token: string | undefined;
  /** The first one that is no token; "" without one. */
  readonly chosen: string;
}

/** Whether a request asks for a WebSocket (wsstream.IsWebSocketRequest). */
export function isWebSocketRequest({ headers }: HttpHead): boolean {
  const has = (name: string, part: string): boolean =>
    (headers.get(name) ?? "")
      .toLowerCase()
      .split(",")
      .some((one) => one.trim() === part);
  return has("upgrade", "websocket") && has("connection", "upgrade");
}

/** The subprotocols of a WebSocket's request. Throws Error for a token that is malformed. */
export function socketProtocols({ headers }: HttpHead): SocketProtocols {
  const all = (headers.get("sec-websocket-protocol") ?? "").split(",").map((one) => one.trim());
  const others = all.filter((one) => one !== "" && !one.startsWith(TOKEN_PREFIX));
  const [first, second] = all.filter((one) => one.startsWith(TOKEN_PREFIX));
  const [chosen = ""] = others;
  if (first === undefined) return { token: undefined, chosen };
  if (second !== undefined)
    throw new Error("multiple base64.bearer.authorization tokens specified");
  const token = fromBase64Url(first.slice(TOKEN_PREFIX.length));
  if (token === undefined) throw new Error("invalid base64.bearer.authorization token encoding");
  if (token !== "" && chosen === "") throw new Error("missing additional subprotocol");
  return { token: token === "" ? undefined : token, chosen };
}

/**
 * Base64 for URLs without padding (RFC 4648, section 5). The text; undefined for a malformed
 * encoding or bytes that are no UTF-8.
 */
export function fromBase64Url(encoded: string): string | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(encoded) || encoded.length % 4 === 1) return undefined;
  const plain = encoded.replaceAll("-", "+").replaceAll("_", "/");
  const padded = plain.padEnd(Math.ceil(plain.length / 4) * 4, "=");
  const space = new Uint8Array(padded.length);
  const text = toUtf8(space.subarray(0, writeFromBase64(space, padded, 0)));
  return text.includes("\ufffd") ? undefined : text;
}
