/**
 * WebSockets of browsers, which cannot set Authorization: the token is one of the subprotocols
 * (apiserver: pkg/authentication/request/websocket/protocol.go). Another one must be there, which
 * the response names.
 *
 *     Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.TOKEN, json.k8s.io
 */
import type { HttpHead } from "@quorate/host";
import { fromBase64Url } from "./base64-url.ts";

const TOKEN_PREFIX = "base64url.bearer.authorization.k8s.io.";

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
  const tokens = all.filter((one) => one.startsWith(TOKEN_PREFIX));
  const [chosen = ""] = others;
  if (tokens.length === 0) return { token: undefined, chosen };
  if (tokens.length > 1) throw new Error("multiple base64.bearer.authorization tokens specified");
  const token = fromBase64Url(tokens[0].slice(TOKEN_PREFIX.length));
  if (token === undefined) throw new Error("invalid base64.bearer.authorization token encoding");
  if (token !== "" && chosen === "") throw new Error("missing additional subprotocol");
  return { token: token === "" ? undefined : token, chosen };
}
