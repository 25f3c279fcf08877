/** The requests whose way is measured, each on a cluster of three members of its own. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  fromUtf8,
  KVService,
  LeaseKeepAliveRequest,
  LeaseService,
  PutRequest,
  RequestOp,
  TxnRequest,
  WatchCreateRequest,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import { ApiClient } from "../../../test/robustness/apiserver/api-client.ts";
import { ApiProcess, TOKEN } from "../../../test/robustness/apiserver/api-process.ts";
import { AuthClient, CHEAP_LOGINS, enableAuth } from "../../../test/support/auth.ts";
import { leaderOf } from "../../../test/support/checks.ts";
import { startCluster, type TestCluster } from "../../../test/support/cluster.ts";
import { quorate } from "../../../test/support/executables.ts";
import type { TestMember } from "../../../test/support/member.ts";
import { freePorts } from "../../../test/support/ports.ts";
import { INSPECTED, Inspector } from "./inspector.ts";

export const KINDS = ["put", "get", "txn", "watch", "keep-alive", "create"] as const;
export type Kind = (typeof KINDS)[number];

/** What the way of each kind is, in words. */
export const ABOUT: Readonly<Record<Kind, string>> = {
  put: "a put of one key, on the leader",
  get: "a linearizable get of one key, on the leader",
  txn: "a compare and a put by an authenticated user, on the leader",
  watch: "an event of a put for a watcher on the leader, beyond the put itself",
  "keep-alive": "a keep-alive of a lease, on the leader",
  create: "a create of a ConfigMap, in the API server",
};

/** The request, ready to be made again and again. */
export interface Scene extends AsyncDisposable {
  readonly inspector: Inspector;
  /** One request; resolves with its response. */
  readonly request: () => Promise<void>;
  /** What the request is more than. */
  readonly baseline: () => Promise<void>;
}

/** Rare ticks: a window without one is found soon. */
const RARE_TICKS = ["--heartbeat-interval=1000", "--election-timeout=10000"];

const KEY = fromUtf8("path");
const nothing = async (): Promise<void> => {};

/** A comparison that holds, and a put. */
const transaction = (value: Uint8Array): TxnRequest =>
  TxnRequest.create({
    compare: [
      Compare.create({
        key: KEY,
        result: Compare_CompareResult.GREATER,
        target: Compare_CompareTarget.VERSION,
        targetUnion: { case: "version", value: 0 },
      }),
    ],
    success: [
      RequestOp.create({
        request: { case: "requestPut", value: PutRequest.create({ key: KEY, value }) },
      }),
    ],
  });

/** Starts a cluster, and makes the request once so that it is warm. */
export async function openScene(kind: Kind): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const cluster = await startCluster({
    executable: quorate,
    flags: [...RARE_TICKS, ...CHEAP_LOGINS],
    env: INSPECTED,
  });
  stack.defer(() => cluster.destroy());
  const leader = await leaderOf(cluster);
  const parts =
    kind === "create" ? await apiServer(cluster, stack) : await member(kind, leader, stack);
  const inspector = await Inspector.open(parts.log);
  stack.defer(() => inspector.close());
  for (let i = 0; i < 3; i++) {
    await parts.baseline();
    await parts.request();
  }
  const kept = stack.move();
  const { request, baseline } = parts;
  return { inspector, request, baseline, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

interface Parts {
  readonly log: string;
  readonly request: () => Promise<void>;
  readonly baseline: () => Promise<void>;
}

/** A request to a member. */
async function member(
  kind: Exclude<Kind, "create">,
  { clientAddress, options }: TestMember,
  stack: AsyncDisposableStack,
): Promise<Parts> {
  const client = new AuthClient(clientAddress);
  stack.defer(() => client.close());
  const log = readFileSync(options.logFile, "utf8");
  let written = 0;
  const put = async (key = KEY): Promise<void> => {
    await client.call(KVService.methods.Put, { key, value: fromUtf8(`${written++}`) });
  };
  await put();
  if (kind === "put") return { log, request: () => put(), baseline: nothing };
  if (kind === "get") {
    const get = async (): Promise<void> => {
      await client.call(KVService.methods.Range, { key: KEY });
    };
    return { log, request: get, baseline: nothing };
  }
  if (kind === "txn") {
    await enableAuth(client, { ann: [["path", "", "readwrite"]] });
    await client.login("ann");
    const txn = async (): Promise<void> => {
      await client.call(KVService.methods.Txn, transaction(fromUtf8(`${written++}`)));
    };
    return { log, request: txn, baseline: nothing };
  }
  if (kind === "watch") {
    const stream = client.stream(WatchService.methods.Watch);
    stream.on("error", () => {});
    const responses = stream[Symbol.asyncIterator]();
    const watched = fromUtf8("watched");
    const value = WatchCreateRequest.create({ key: watched });
    const create = WatchRequest.create({ requestUnion: { case: "createRequest", value } });
    stream.write(Buffer.from(WatchRequest.encode(create)));
    await responses.next();
    const seen = async (): Promise<void> => {
      await put(watched);
      await responses.next();
    };
    return { log, request: seen, baseline: () => put() };
  }
  const { ID } = await client.call(LeaseService.methods.LeaseGrant, { TTL: 3600 });
  const stream = client.stream(LeaseService.methods.LeaseKeepAlive);
  stream.on("error", () => {});
  const responses = stream[Symbol.asyncIterator]();
  const keepAlive = async (): Promise<void> => {
    stream.write(Buffer.from(LeaseKeepAliveRequest.encode({ ID })));
    await responses.next();
  };
  return { log, request: keepAlive, baseline: nothing };
}

/** A request to an API server before the cluster. */
async function apiServer(cluster: TestCluster, stack: AsyncDisposableStack): Promise<Parts> {
  const [port] = await freePorts(1);
  const client = new ApiClient(port, TOKEN);
  const server = new ApiProcess(join(cluster.dir, "api"), cluster.endpoints, client);
  server.start(INSPECTED);
  stack.defer(() => server.kill());
  await server.waitReady();
  let created = 0;
  const create = async (): Promise<void> => {
    const { code } = await client.call("POST", "/api/v1/namespaces/default/configmaps", {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `path-${created++}` },
      data: { key: "value" },
    });
    if (code !== 201) throw new Error(`the API server responded ${code}`);
  };
  return { log: server.log(), request: create, baseline: nothing };
}
