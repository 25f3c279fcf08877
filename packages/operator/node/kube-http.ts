/** The API server over HTTP, with JSON. Connections are kept and shared. */
import { tlsContext } from "@quorate/host";
import type { KubeAccess } from "@quorate/kube-storage";
import { Agent, request } from "undici";
import {
  type Kind,
  type Kube,
  KubeError,
  type KubeObject,
  type MergePatch,
  RESOURCES,
} from "../src/base/kube.ts";

/** Of a request; a watch is open for longer. */
const TIMEOUT_MS = 15_000;
/** The API server ends a watch after so long, and it is opened again. */
const WATCH_SECONDS = 300;
/** A longer line of a watch is taken for a fault of the server. */
const MAX_LINE_CHARS = 8 << 20;
const PAGE = 500;

function pathOf(kind: Kind, namespace: string, name = "", subresource = ""): string {
  const { apiVersion, plural } = RESOURCES[kind];
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const within = namespace === "" ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  const tail = [name, subresource].filter((part) => part !== "").map(encodeURIComponent);
  return [`${root}${within}/${plural}`, ...tail].join("/");
}

interface ListPage<T> {
  readonly items: readonly T[];
  readonly metadata: { readonly continue?: string };
}

interface WatchLine {
  readonly type: string;
  readonly object: KubeObject & { readonly message?: string };
}

export class HttpKube implements Kube {
  readonly #access: KubeAccess;
  readonly #agent: Agent;

  constructor(access: KubeAccess) {
    this.#access = access;
    const { trusted, cert, key, serverName, isInsecure } = access;
    const connect = {
      ...tlsContext({ trusted, cert, key }),
      ...(serverName === undefined ? {} : { servername: serverName }),
      rejectUnauthorized: !isInsecure,
    };
    this.#agent = new Agent({ connect, connections: 8 });
  }

  async list<T extends KubeObject>(kind: Kind, namespace: string, labels: string): Promise<T[]> {
    const items: T[] = [];
    let next = "";
    do {
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (labels !== "") query.set("labelSelector", labels);
      if (next !== "") query.set("continue", next);
      const page = await this.#call<ListPage<T>>("GET", `${pathOf(kind, namespace)}?${query}`);
      const { apiVersion } = RESOURCES[kind];
      // Items of a list have no kind of their own.
      items.push(...page.items.map((item) => ({ ...item, apiVersion, kind })));
      next = page.metadata.continue ?? "";
    } while (next !== "");
    return items;
  }

  async get<T extends KubeObject>(
    kind: Kind,
    namespace: string,
    name: string,
  ): Promise<T | undefined> {
    try {
      return await this.#call<T>("GET", pathOf(kind, namespace, name));
    } catch (error) {
      if (error instanceof KubeError && error.code === "NotFound") return undefined;
      throw error;
    }
  }

  async create(object: KubeObject): Promise<void> {
    const path = pathOf(object.kind as Kind, object.metadata.namespace ?? "");
    await this.#call("POST", path, object);
  }

  async patch(
    kind: Kind,
    namespace: string,
    name: string,
    patch: MergePatch,
    subresource: "" | "status",
  ): Promise<void> {
    const path = pathOf(kind, namespace, name, subresource);
    await this.#call("PATCH", path, patch, "application/merge-patch+json");
  }

  async remove(kind: Kind, namespace: string, name: string, uid: string): Promise<void> {
    const options = { kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid } };
    try {
      await this.#call("DELETE", pathOf(kind, namespace, name), options);
    } catch (error) {
      const isGone = error instanceof KubeError && ["NotFound", "Conflict"].includes(error.code);
      if (!isGone) throw error;
    }
  }

  watch(
    kind: Kind,
    namespace: string,
    changed: (object: KubeObject) => void,
    lost: (error: unknown) => void,
  ): () => void {
    const stop = new AbortController();
    const query = new URLSearchParams({ watch: "true", timeoutSeconds: String(WATCH_SECONDS) });
    this.#follow(`${pathOf(kind, namespace)}?${query}`, changed, stop.signal).then(
      () => lost(new Error("the API server ended the watch")),
      lost,
    );
    return () => stop.abort();
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #follow(
    path: string,
    changed: (object: KubeObject) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { body, statusCode } = await request(`${this.#access.url}${path}`, {
      dispatcher: this.#agent,
      headers: this.#headers(),
      signal,
      bodyTimeout: (WATCH_SECONDS + 30) * 1000,
    });
    if (statusCode !== 200) throw errorOf(statusCode, await body.text());
    let rest = "";
    body.setEncoding("utf8");
    for await (const chunk of body) {
      const lines = (rest + String(chunk)).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > MAX_LINE_CHARS) throw new Error("a line of a watch is too long");
      for (const line of lines) {
        const { type, object } = JSON.parse(line) as WatchLine;
        if (type === "ERROR") throw new Error(object.message ?? "the watch failed");
        changed(object);
      }
    }
  }

  #headers(): Record<string, string> {
    const authorization = this.#access.authorization();
    const fields = { accept: "application/json", "user-agent": "quorate-operator" };
    return authorization === undefined ? fields : { ...fields, authorization };
  }

  async #call<T>(
    method: "GET" | "POST" | "PATCH" | "DELETE",
    path: string,
    sent?: object,
    contentType = "application/json",
  ): Promise<T> {
    const { body, statusCode } = await request(`${this.#access.url}${path}`, {
      method,
      dispatcher: this.#agent,
      headers: {
        ...this.#headers(),
        ...(sent === undefined ? {} : { "content-type": contentType }),
      },
      body: sent === undefined ? null : JSON.stringify(sent),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
    const text = await body.text();
    if (statusCode >= 300) throw errorOf(statusCode, text);
    return JSON.parse(text) as T;
  }
}

function errorOf(status: number, text: string): KubeError {
  try {
    const { reason = "", message = text } = JSON.parse(text) as Record<string, string>;
    return new KubeError(status, reason, message);
  } catch {
    return new KubeError(status, "", text.slice(0, 1000));
  }
}
