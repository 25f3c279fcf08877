/** The requests whose way is measured, each on a cluster of three members of its own. */
import { readFileSync } from "node:fs";
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
import { AuthClient, CHEAP_LOGINS, enableAuth } from "../../../test/support/auth.ts";
import { leaderOf } from "../../../test/support/checks.ts";
import { startCluster, type TestCluster } from "../../../test/support/cluster.ts";
import { quorate } from "../../../test/support/executables.ts";
import type { TestMember } from "../../../test/support/member.ts";
import { contributed } from "../../contributed.ts";
import { INSPECTED, Inspector } from "./inspector.ts";

/** A kind of request whose way is measured. */
export interface Kind {
  /** What the request is, in words. */
  readonly about: string;
  /** Makes it ready. What it starts is for `stack` to end. */
  open(cluster: TestCluster, stack: AsyncDisposableStack): Promise<Parts>;
}

/** The request, and the log of the process that serves it. */
export interface Parts {
  readonly log: string;
  readonly request: () => Promise<void>;
  /** What the request is more than. */
  readonly baseline: () => Promise<void>;
}

/** The request, ready to be made again and again. */
export interface Scene extends AsyncDisposable {
  readonly inspector: Inspector;
  /** One request; resolves with its response. */
  readonly request: () => Promise<void>;
  /** What the request is more than. */
  readonly baseline: () => Promise<void>;
}

/** Rare ticks: a window without one is found soon. */
const RARE_TICKS = ["--heartbeat-interval=3000", "--election-timeout=30000"];

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

type MemberKind = "put" | "get" | "txn" | "watch" | "keep-alive";

/** A request to a member. */
async function member(
  kind: MemberKind,
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

const ofMembers: Readonly<Record<MemberKind, string>> = {
  put: "a put of one key, on the leader",
  get: "a linearizable get of one key, on the leader",
  txn: "a compare and a put by an authenticated user, on the leader",
  watch: "an event of a put for a watcher on the leader, beyond the put itself",
  "keep-alive": "a keep-alive of a lease, on the leader",
};

/** All kinds by name: those of members, and those of packages. */
export const KINDS: Readonly<Record<string, Kind>> = Object.assign(
  Object.fromEntries(
    Object.entries(ofMembers).map(([name, about]): [string, Kind] => [
      name,
      {
        about,
        open: async (cluster, stack) => member(name as MemberKind, await leaderOf(cluster), stack),
      },
    ]),
  ),
  ...(await contributed<{ kinds: Readonly<Record<string, Kind>> }>("path")).map((it) => it.kinds),
);

/**
 * Starts a cluster, and makes the request of that kind so that it is warm.
 *
 * @param name one of KINDS
 */
export async function openScene(name: string): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const cluster = await startCluster({
    executable: quorate,
    flags: [...RARE_TICKS, ...CHEAP_LOGINS],
    env: INSPECTED,
  });
  stack.defer(() => cluster.destroy());
  const parts = await KINDS[name].open(cluster, stack);
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
