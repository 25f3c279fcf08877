/**
 * How a server is reached by a kubeconfig (client-go: tools/clientcmd): the current context's
 * cluster and user, with what proves both. Plugins for credentials are not run.
 *
 *     current-context -> context -> cluster: server, its authority
 *                                -> user: a certificate, a token, or a password
 */

import { fromBase64, fromUtf8, toBase64, toUtf8 } from "@quorate/proto";

export interface KubeAccess {
  /** Such as "https://10.0.0.1:443". */
  readonly url: string;
  /** PEM; undefined for the system's authorities. */
  readonly trusted: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** The name in the server's certificate, where it is not the URL's. */
  readonly serverName: string | undefined;
  /** Any certificate will do. */
  readonly isInsecure: boolean;
  /** The header that says who asks; read for each request, as tokens in files are renewed. */
  authorization(): string | undefined;
  /** The namespace of the context. */
  readonly namespace: string;
}

type Fields = Readonly<Record<string, unknown>>;
interface Kubeconfig {
  readonly "current-context"?: string;
  readonly contexts?: readonly { readonly name: string; readonly context?: Fields }[];
  readonly clusters?: readonly { readonly name: string; readonly cluster?: Fields }[];
  readonly users?: readonly { readonly name: string; readonly user?: Fields }[];
}

/**
 * Reads a kubeconfig.
 * @param value of its JSON or YAML
 * @param path for messages
 * @param read gives a file's text, by a path that is relative to the kubeconfig
 * @throws Error that says what is missing, and those of `read`
 */
export function kubeAccessOf(
  value: unknown,
  path: string,
  read: (path: string) => string,
): KubeAccess {
  const config = (value ?? {}) as Kubeconfig;
  const named = <T extends { readonly name: string }>(
    list: readonly T[] | undefined,
    name: unknown,
  ): T => {
    const found = Array.isArray(list) ? list.find((one) => one?.name === name) : undefined;
    if (found === undefined) throw new Error(`${path}: there is no ${String(name)}`);
    return found;
  };
  const { context = {} } = named(config.contexts, config["current-context"]);
  const { cluster = {} } = named(config.clusters, context["cluster"]);
  const user = context["user"] ? (named(config.users, context["user"]).user ?? {}) : {};
  const text = (from: Fields, field: string): string | undefined => {
    const one = from[field];
    if (one === undefined || one === null || one === "") return undefined;
    if (typeof one === "string") return one;
    throw new Error(`${path}: ${field} is no text`);
  };
  const pem = (from: Fields, field: string): string | undefined => {
    const inline = text(from, `${field}-data`);
    if (inline !== undefined) {
      const bytes = fromBase64(inline);
      if (bytes === undefined) throw new Error(`${path}: ${field}-data is no base64`);
      return toUtf8(bytes);
    }
    const file = text(from, field);
    return file === undefined ? undefined : read(file);
  };
  for (const field of ["exec", "auth-provider"])
    if (user[field] !== undefined && user[field] !== null)
      throw new Error(`${path}: plugins for credentials are not run: use a certificate or a token`);
  if (text(cluster, "proxy-url") !== undefined)
    throw new Error(`${path}: proxy-url is not supported`);
  const url = text(cluster, "server");
  if (url === undefined) throw new Error(`${path}: the cluster has no server`);
  return {
    url: url.endsWith("/") ? url.slice(0, -1) : url,
    trusted: pem(cluster, "certificate-authority"),
    cert: pem(user, "client-certificate"),
    key: pem(user, "client-key"),
    serverName: text(cluster, "tls-server-name"),
    isInsecure: cluster["insecure-skip-tls-verify"] === true,
    authorization: authorizationOf(
      text(user, "token"),
      text(user, "tokenFile"),
      text(user, "username"),
      text(user, "password"),
      read,
    ),
    namespace: text(context, "namespace") ?? "default",
  };
}

function authorizationOf(
  token: string | undefined,
  tokenFile: string | undefined,
  username: string | undefined,
  password: string | undefined,
  read: (path: string) => string,
): () => string | undefined {
  // As in client-go, a file comes before a token.
  if (tokenFile !== undefined) return () => `Bearer ${read(tokenFile).trim()}`;
  if (token !== undefined) return () => `Bearer ${token}`;
  if (username === undefined) return () => undefined;
  const pair = toBase64(fromUtf8(`${username}:${password ?? ""}`));
  return () => `Basic ${pair}`;
}
