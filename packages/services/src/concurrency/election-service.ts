/**
 * v3electionpb.Election: elects a leader and reports it to observers (etcd:
 * server/etcdserver/api/v3election).
 */

import type { ClientBudget, Member } from "@quorate/member";
import { type Caller, callerOf } from "@quorate/member";
import {
  DeleteRangeRequest,
  defined,
  ElectionService,
  equals,
  errorOf,
  KeyValue,
  RangeRequest,
  type ResponseHeader,
  type TxnResponse,
  v3electionpb,
} from "@quorate/proto";
import type { StreamCall, StreamHandler, StreamListener, UnaryHandler } from "@quorate/rpc";
import { toStatusError } from "../calls/results.ts";
import {
  contestError,
  contestHandlers,
  enterContest,
  firstOf,
  givenUp,
  keyOf,
  type Prefix,
  prefixOf,
  putOp,
  rangeOp,
  sessionLease,
  waitForDeletes,
} from "./contest.ts";
import { type KeyEvent, LocalClient } from "./local-client.ts";

type LeaderKey = v3electionpb.LeaderKey;

const NOT_LEADER = "election: not leader";
const NO_LEADER = "election: no leader";
const MISSING_LEADER_KEY = '"leader" field must be provided';

/** The unary handlers of the Election service, by path. */
export function electionService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { Campaign, Proclaim, Leader, Resign } = ElectionService.methods;
  return contestHandlers(member, [
    [
      Campaign.path,
      async (bytes, caller, client) => {
        const request = v3electionpb.CampaignRequest.decode(bytes);
        const leave = enterContest(member.watches.contestBudget, caller, request.name);
        return v3electionpb.CampaignResponse.encode(
          await campaign(client, request, caller).finally(leave),
        );
      },
    ],
    [
      Proclaim.path,
      async (bytes, _caller, client) => {
        const { leader, value } = v3electionpb.ProclaimRequest.decode(bytes);
        if (leader === undefined) throw new Error(MISSING_LEADER_KEY);
        const lease = await sessionLease(client, leader.lease);
        return v3electionpb.ProclaimResponse.encode({
          header: await proclaim(client, { ...leader, lease }, value),
        });
      },
    ],
    [
      Leader.path,
      async (bytes, _caller, client) => {
        const { name } = v3electionpb.LeaderRequest.decode(bytes);
        const { header, kvs } = await client.range(firstOf(prefixOf(name)));
        if (kvs[0] === undefined) throw new Error(NO_LEADER);
        return v3electionpb.LeaderResponse.encode({ header, kv: kvs[0] });
      },
    ],
    [
      Resign.path,
      async (bytes, _caller, client) => {
        const { leader } = v3electionpb.ResignRequest.decode(bytes);
        if (leader === undefined) throw new Error(MISSING_LEADER_KEY);
        return v3electionpb.ResignResponse.encode({ header: await resign(client, leader) });
      },
    ],
  ]);
}

/** The streaming handlers of the Election service, by path. */
export function electionStreams(member: Member): ReadonlyMap<string, StreamHandler> {
  return new Map<string, StreamHandler>([
    [ElectionService.methods.Observe.path, (call) => new Observation(member, call)],
  ]);
}

async function campaign(
  client: LocalClient,
  request: v3electionpb.CampaignRequest,
  caller: Caller,
): Promise<v3electionpb.CampaignResponse> {
  const prefix = prefixOf(request.name);
  const lease = await sessionLease(client, request.lease);
  const key = keyOf(prefix, lease);
  const answer = await client.txnIfCreatedAt(
    key,
    0,
    [putOp(key, request.value, lease)],
    [rangeOp(RangeRequest.create({ key }))],
  );
  const leader: LeaderKey = { name: request.name, key, rev: answer.header.revision, lease };
  try {
    if (!answer.succeeded) {
      const own = defined(firstKv(answer), "the first kv");
      leader.rev = own.createRevision;
      if (!equals(own.value, request.value)) await proclaim(client, leader, request.value);
    }
    if (!(await waitForDeletes(client, prefix, leader.rev - 1, givenUp(caller))))
      throw errorOf("Canceled");
  } catch (error) {
    await resign(client, leader).catch(() => {});
    throw error;
  }
  return { header: answer.header, leader };
}

/** Sets another value for the leader's key, if it still is the leader's. */
async function proclaim(
  client: LocalClient,
  leader: LeaderKey,
  value: Uint8Array,
): Promise<ResponseHeader> {
  const { succeeded, header } = await client.txnIfCreatedAt(leader.key, leader.rev, [
    putOp(leader.key, value, leader.lease),
  ]);
  if (!succeeded) throw new Error(NOT_LEADER);
  return header;
}

/** Deletes the leader's key, if it still is the leader's. */
async function resign(client: LocalClient, { key, rev }: LeaderKey): Promise<ResponseHeader> {
  const remove = {
    request: { case: "requestDeleteRange", value: DeleteRangeRequest.create({ key }) },
  } as const;
  return (await client.txnIfCreatedAt(key, rev, [remove])).header;
}

function firstKv(answer: TxnResponse): KeyValue | undefined {
  const response = answer.responses[0]?.response;
  const bytes = response?.case === "responseRange" ? response.value.kvs[0] : undefined;
  return bytes === undefined ? undefined : KeyValue.decode(bytes);
}

/**
 * One observer: receives each leader and what it proclaims, in order. One that does not read
 * receives only the newest when it reads again.
 */
class Observation implements StreamListener {
  readonly #caller: Caller;
  readonly #client: LocalClient;
  readonly #call: StreamCall;
  #prefix: Prefix | undefined;
  /** The response that did not fit into the call's send buffer. */
  #late: Uint8Array | undefined;
  #canSend = true;
  #isOver = false;
  #stopWatch: () => void = () => {};
  readonly #budget: ClientBudget;
  #leave: () => void = () => {};

  constructor(member: Member, call: StreamCall) {
    this.#caller = callerOf(call.context);
    this.#client = new LocalClient(member, this.#caller);
    this.#call = call;
    this.#budget = member.watches.contestBudget;
  }

  message(bytes: Uint8Array): void {
    if (this.#prefix !== undefined) return;
    const { name } = v3electionpb.LeaderRequest.decode(bytes);
    this.#leave = enterContest(this.#budget, this.#caller, name);
    this.#prefix = prefixOf(name);
    this.#run(this.#prefix).catch((error: unknown) => {
      if (this.#isOver) return;
      this.cancelled();
      this.#call.end(toStatusError(contestError(error)));
    });
  }

  drained(): void {
    this.#canSend = true;
    const late = this.#late;
    this.#late = undefined;
    if (late !== undefined) this.#canSend = this.#call.send(late);
  }

  cancelled(): void {
    this.#isOver = true;
    this.#stopWatch();
    this.#leave();
    this.#leave = () => {};
  }

  async #run(prefix: Prefix): Promise<void> {
    while (!this.#isOver) {
      const { header, kvs } = await this.#client.range(firstOf(prefix));
      const leader =
        kvs[0] === undefined
          ? await this.#firstPut(prefix, header.revision)
          : { header, kv: kvs[0] };
      if (leader === undefined || this.#isOver) continue;
      this.#sendLeader(leader.header, leader.kv);
      await this.#follow(leader.kv.key, leader.header.revision + 1);
    }
  }

  #sendLeader(header: ResponseHeader, kv: KeyValue): void {
    const bytes = v3electionpb.LeaderResponse.encode({ header, kv });
    if (this.#canSend) this.#canSend = this.#call.send(bytes);
    else this.#late = bytes;
  }

  /**
   * The first key put under the prefix from a revision on; undefined when the watch ends without.
   */
  #firstPut(
    prefix: Prefix,
    startRevision: number,
  ): Promise<{ header: ResponseHeader; kv: KeyValue } | undefined> {
    return this.#watch({ ...prefix, startRevision }, (events, header) => {
      const put = events.find((event) => !event.deleted);
      return put === undefined
        ? undefined
        : { header: { ...header, revision: put.kv.modRevision }, kv: put.kv };
    });
  }

  /** Sends what the leader proclaims, until its key is deleted. */
  async #follow(key: Uint8Array, startRevision: number): Promise<void> {
    await this.#watch({ key, rangeEnd: new Uint8Array(0), startRevision }, (events, header) => {
      for (const { deleted, kv } of events) {
        if (deleted) return true;
        this.#sendLeader(header, kv);
      }
      return undefined;
    });
  }

  /** Watches until `found` returns a value, the watch is over, or the observer has left. */
  #watch<T>(
    range: Prefix & { readonly startRevision: number },
    found: (events: readonly KeyEvent[], header: ResponseHeader) => T | undefined,
  ): Promise<T | undefined> {
    return new Promise((resolve) => {
      const stop = this.#client.watch(range, (events, header) => {
        if (this.#isOver) return;
        const result = events === undefined ? undefined : found(events, header);
        if (events !== undefined && result === undefined) return;
        this.#stopWatch();
        resolve(result);
      });
      this.#stopWatch = () => {
        this.#stopWatch = () => {};
        stop();
        resolve(undefined);
      };
    });
  }
}
