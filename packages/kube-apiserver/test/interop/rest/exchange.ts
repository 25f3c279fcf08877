/** One request to an API server, and what of its response is compared. */
import { Agent, request } from "node:https";
import { urlToHttpOptions } from "node:url";
import { parse } from "yaml";

export interface ApiRequest {
  readonly method: string;
  /** Sent as it is, with its query. */
  readonly path: string;
  /** An object is sent as JSON, a text as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** A watch: of its response the status counts, its body is not waited for. */
  readonly isEndless?: boolean;
}

export interface ApiResponse {
  readonly status: number;
  /** Of Warning headers, where there are some. */
  readonly warning?: string;
  /** JSON where it is. */
  readonly body: unknown;
}

/** How to reach a server. */
export interface ApiAccess {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** PEM texts, where the user has a certificate. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: { readonly server: string } }[];
  readonly users: readonly { readonly user: Readonly<Record<string, string | undefined>> }[];
}

/** The first cluster and user of a kubeconfig. */
export function accessOf(kubeconfig: string): ApiAccess {
  const { clusters, users } = parse(kubeconfig) as Kubeconfig;
  const { user } = users[0];
  const decoded = (name: string): string | undefined => {
    const data = user[`${name}-data`];
    return data === undefined ? undefined : Buffer.from(data, "base64").toString();
  };
  const { token } = user;
  return {
    url: clusters[0].cluster.server,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    cert: decoded("client-certificate"),
    key: decoded("client-key"),
  };
}

const LIMIT_MS = 20_000;
/** Connections are used again; an idle one does not keep the program. */
const agent = new Agent({ keepAlive: true, maxSockets: 8 });

function textOf({ body }: ApiRequest): string | undefined {
  if (body === undefined || typeof body === "string") return body;
  return JSON.stringify(body);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Sends the request; rejects where the connection fails or nothing comes for 20 s. */
export function exchange(access: ApiAccess, sent: ApiRequest): Promise<ApiResponse> {
  const text = textOf(sent);
  const headers: Record<string, string | number> = { ...access.headers, ...sent.headers };
  if (text !== undefined) {
    headers["content-type"] ??= "application/json";
    headers["content-length"] = Buffer.byteLength(text);
  }
  return new Promise((resolve, reject) => {
    const { cert, key } = access;
    const { hostname, port } = urlToHttpOptions(new URL(access.url));
    const { method, path } = sent;
    const to = { hostname, port, method, path, headers, agent };
    const outgoing = request({ ...to, cert, key, rejectUnauthorized: false }, (response) => {
      if (sent.isEndless && response.statusCode === 200) {
        resolve({ status: 200, body: "" });
        response.destroy();
        return;
      }
      // Go sends a text with its refusal of a HEAD, at which Node's parser fails after the head.
      if (method === "HEAD") resolve({ status: response.statusCode ?? 0, body: "" });
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        body += chunk;
      });
      response.on("error", reject);
      response.on("end", () => {
        const { warning } = response.headers;
        const status = response.statusCode ?? 0;
        resolve({ status, ...(warning ? { warning } : {}), body: parsed(body) });
      });
    });
    outgoing.setTimeout(LIMIT_MS, () => outgoing.destroy(new Error(`no response: ${sent.path}`)));
    outgoing.on("error", reject);
    outgoing.end(text);
  });
}
