/**
 * A whole API server over a cluster in memory, without sockets: requests are exchanges in memory.
 * For servers with sockets there is startApiServer.
 */
import assert from "node:assert/strict";

import { type HttpHead, SeededRandom, silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { MemoryExchange } from "@quorate/host/testing";
import { identityTransformer } from "@quorate/kube-storage";
import { MemoryCluster } from "@quorate/kube-storage/testing";
import { gzipCompressor } from "../../node/gzip.ts";
import { newServiceAccountKeyPem, serviceAccountKeys } from "../../node/service-account-keys.ts";
import {
  ControlPlane,
  type ControlPlaneDeps,
  type ControlPlaneOptions,
} from "../../src/server/control-plane.ts";

export interface Sent {
  readonly method?: string;
  /** JSON, or a text that is sent as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of the client's certificate; by default system:masters. */
  readonly user?: string;
  readonly groups?: readonly string[];
}

/** A response whose body is JSON, or text. */
export interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it is what it checks
  readonly json: any;
}

export class ApiWorld {
  readonly plane: ControlPlane;
  readonly cluster: MemoryCluster;

  private constructor(plane: ControlPlane, cluster: MemoryCluster) {
    this.plane = plane;
    this.cluster = cluster;
  }

  /** Starts a server; it ends with the test. */
  static async open(
    t: { after(task: () => Promise<void>): void },
    options: Partial<ControlPlaneOptions> = {},
    cluster: MemoryCluster = new MemoryCluster(),
    more: Partial<ControlPlaneDeps> = {},
  ): Promise<ApiWorld> {
    const key = { path: "key", pem: await newServiceAccountKeyPem() };
    const issuers = ["https://test"];
    const plane = new ControlPlane(
      {
        etcdPrefix: "/registry",
        watchCache: true,
        minWatchMs: 1_800_000,
        storesJson: false,
        requestTimeoutMs: 60_000,
        maxInFlight: 600,
        eventTtlSeconds: 3600,
        resources: [],
        version: { gitVersion: "v1.36.3" },
        places: { usesEndpoints: false, services: new Map() },
        compactionIntervalMs: 0,
        serviceNetwork: { ranges: ["10.0.0.0/24"], nodePorts: { first: 30_000, last: 32_767 } },
        policy: {
          plugins: new Set(),
          rootCaPem: "",
          identity: "test",
          createsDefaultRoles: false,
        },
        access: {
          modes: ["RBAC"],
          allowAnonymous: true,
          clientCertificates: true,
          staticTokens: undefined,
          serviceAccounts: {
            issuers,
            audiences: issuers,
            maxExpirationSeconds: 0,
            keys: serviceAccountKeys(key),
          },
        },
        ...options,
      },
      {
        cluster,
        clock: nodeClock,
        random: new SeededRandom(7n),
        logger: silentLogger,
        newCompressor: gzipCompressor,
        webhooks: { call: () => Promise.reject(new Error("no webhook is expected")) },
        backends: {
          call() {
            throw new Error("no other server is expected");
          },
        },
        transformerOf: () => identityTransformer,
        pages: new Map(),
        ...more,
      },
    );
    t.after(async () => {
      plane.endWatches();
      await plane.close();
    });
    await plane.ready(nodeClock, 10_000);
    await plane.start();
    return new ApiWorld(plane, cluster);
  }

  /** Starts a request; its response may go on. @param target with the query */
  start(target: string, sent: Sent = {}, open = false): MemoryExchange {
    const mark = target.indexOf("?");
    const { user = "admin", groups = ["system:masters"] } = sent;
    const head: Partial<HttpHead> & Pick<HttpHead, "path"> = {
      method: sent.method ?? "GET",
      path: mark === -1 ? target : target.slice(0, mark),
      query: mark === -1 ? "" : target.slice(mark + 1),
      headers: new Map(Object.entries(sent.headers ?? {})),
      peerCommonName: user === "" ? undefined : user,
      peerOrganizations: groups,
    };
    const { body } = sent;
    const text = typeof body === "string" ? body : body === undefined ? "" : JSON.stringify(body);
    const bytes = body instanceof Uint8Array ? body : new TextEncoder().encode(text);
    const exchange = new MemoryExchange(head);
    return exchange.serve(this.plane.server.handle, bytes.length === 0 ? [] : [bytes], open);
  }

  /** A request and its whole response. */
  async request(target: string, sent: Sent = {}): Promise<Received> {
    const exchange = this.start(target, sent);
    await exchange.done;
    assert.equal(exchange.state, "ended");
    const { text } = exchange;
    const isJson = exchange.headers["content-type"]?.startsWith("application/json");
    const plain = exchange.headers["content-encoding"] === undefined;
    return {
      status: exchange.status!,
      headers: exchange.headers,
      text,
      json: isJson && plain && text !== "" ? JSON.parse(text) : undefined,
    };
  }

  /** A request that succeeds. */
  async ok(target: string, sent: Sent = {}): Promise<Received["json"]> {
    const { status, text, json } = await this.request(target, sent);
    assert.ok(status < 300, `${sent.method ?? "GET"} ${target}: ${status} ${text}`);
    return json;
  }

  /** Creates a ConfigMap in the namespace "default". */
  configMap(name: string, data: Record<string, string> = {}, more = {}): Promise<Received["json"]> {
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...more }, data };
    return this.ok(CONFIG_MAPS, { method: "POST", body });
  }
}

export const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
