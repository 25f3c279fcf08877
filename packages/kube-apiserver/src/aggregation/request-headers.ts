/**
 * The head of a request that goes on to another API server (client-go: transport/round_trippers.go,
 * SetAuthProxyHeaders; apimachinery: util/proxy). The credentials stay here: who asks is in headers
 * that the other side believes because of this server's client certificate.
 */
import { hostOfAddress, listItems } from "@quorate/host";
import type { UserInfo } from "@quorate/kube-storage";
import { fromUtf8 } from "@quorate/proto";
import { TOKEN_PREFIX } from "../authn/socket-protocols.ts";
import type { Call } from "../handlers/call.ts";
import type { BackendHeaders } from "./backends.ts";

/** Headers of one connection, credentials, and those that are written anew. */
const DROPPED = new Set([
  "authorization",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "sec-websocket-protocol",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Only this server may say who asks. Some servers take "_" for "-". */
const IDENTITY = /^(?:x[-_]remote[-_]|impersonate[-_])/;

/** Who asks, as headers. */
export function identityHeaders({ name, uid, groups, extra }: UserInfo): BackendHeaders {
  const headers: Record<string, string | readonly string[]> = { "x-remote-user": bytesOf(name) };
  if (uid !== "") headers["x-remote-uid"] = bytesOf(uid);
  if (groups.length > 0) headers["x-remote-group"] = groups.map(bytesOf);
  for (const [key, values] of Object.entries(extra))
    headers[`x-remote-extra-${escapedKey(key)}`] = values.map(bytesOf);
  return headers;
}

/**
 * @param host of the server that the request goes on to, with its port
 * @param isIdentity whether a header says who asks, besides the usual ones
 */
export function forwardedHeaders(
  call: Call,
  host: string,
  path: string,
  isIdentity: (name: string) => boolean = () => false,
): BackendHeaders {
  const headers: Record<string, string | readonly string[]> = {};
  const ofConnection = new Set(listItems(call.header("connection").toLowerCase()));
  for (const [name, value] of call.head.headers)
    if (!DROPPED.has(name) && !ofConnection.has(name) && !IDENTITY.test(name) && !isIdentity(name))
      headers[name] = value;
  const peer = hostOfAddress(call.head.peerAddress);
  const before = call.header("x-forwarded-for");
  return {
    ...headers,
    ...upgradeHeaders(call),
    host,
    "audit-id": call.auditId,
    "x-forwarded-for": before === "" ? peer : `${before}, ${peer}`,
    "x-forwarded-host": call.header("host"),
    "x-forwarded-proto": "https",
    "x-forwarded-uri": path,
    ...identityHeaders(call.user),
  };
}

function upgradeHeaders(call: Call): Record<string, string> {
  const protocols = listItems(call.header("sec-websocket-protocol")).filter(
    (one) => one !== "" && !one.startsWith(TOKEN_PREFIX),
  );
  return {
    ...(isUpgrade(call) ? { connection: "Upgrade", upgrade: call.header("upgrade") } : {}),
    ...(protocols.length === 0 ? {} : { "sec-websocket-protocol": protocols.join(", ") }),
  };
}

/** Whether the client wants another protocol on its connection. */
export function isUpgrade(call: Call): boolean {
  return (
    call.header("upgrade") !== "" &&
    listItems(call.header("connection").toLowerCase()).includes("upgrade")
  );
}

/** A header's value holds bytes: one character each. */
function bytesOf(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: most names are ASCII
  if (/^[\x00-\x7f]*$/.test(text)) return text;
  return Array.from(fromUtf8(text), (byte) => String.fromCharCode(byte)).join("");
}

/** Bytes that no header's name may have, and "%", as %XX. */
function escapedKey(key: string): string {
  return Array.from(fromUtf8(key), (byte) => {
    const char = String.fromCharCode(byte);
    if (/[A-Za-z0-9!#$&'*+.^_`|~-]/.test(char)) return char;
    return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");
}
