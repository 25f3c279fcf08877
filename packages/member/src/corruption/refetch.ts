/**
 * Fetching the leader's store in the place of this member's own, without Raft: what both have in
 * common is the log.
 *
 *     POST /members/store-to/MEMBER-ID (hexadecimal)   the leader streams its store to that member
 *                                                      as it does for one that is far behind
 */
import { type Clock, type HttpHandler, plainError, sleep } from "@quorate/host";
import { idFromHex, idToHex, raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import { NONE_AWAITED } from "@quorate/store";
import type { PeerCall } from "@quorate/transport";
import type { Configuration } from "../apply/configuration.ts";
import type { LogMarks } from "../apply/persistence.ts";
import type { SnapshotReceiver } from "../apply/snapshot-receiver.ts";
import type { StoreExchange } from "../apply/store-exchange.ts";
import type { LeaderView } from "../loop/leader-view.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { Standstill } from "../loop/turns.ts";
import type { StoreRef } from "../reads/store-ref.ts";

export const STORE_TO_PATH = "/members/store-to/";
/** How long the leader may take over its answer, which comes before the store. */
const ASK_TIMEOUT_MS = 5000;
/**
 * How long it may take until the store begins to come: the leader may have ended after its answer,
 * or its store may be refused here.
 */
const BEGIN_TIMEOUT_MS = 15_000;
/**
 * How long the whole store may take. The transport gives up on one that makes no progress long
 * before.
 */
const ARRIVE_TIMEOUT_MS = 30 * 60_000;
/** How long this member may take to apply what the received store has. */
const CATCH_UP_TIMEOUT_MS = 30_000;
const POLL_MS = 20;

export interface RefetchParts {
  readonly memberId: bigint;
  readonly store: StoreRef;
  readonly leader: LeaderView;
  readonly call: PeerCall;
  readonly receiver: SnapshotReceiver;
  readonly marks: LogMarks;
  readonly raft: Raft;
  readonly lifetime: Lifetime;
  readonly standstill: Standstill;
  readonly exchange: StoreExchange;
  readonly configuration: Configuration;
  readonly clock: Clock;
}

/**
 * Rejects where it did not work; the store in use is then the old one, whole, or the new one,
 * whole.
 * @param stopped rejects when the member ends
 */
export async function refetchStore(parts: RefetchParts, stopped: Promise<never>): Promise<void> {
  const { receiver, marks, raft, standstill, exchange, configuration, clock } = parts;
  const expected = receiver.expect();
  try {
    await askLeader(parts);
    const within = <T>(promise: Promise<T>, timeoutMs: number, text: string): Promise<T> =>
      beforeEnd(clock, stopped, promise, timeoutMs, text);
    await within(expected.begun, BEGIN_TIMEOUT_MS, "the leader's store did not begin to come");
    const arrived = within(
      expected.arrived,
      ARRIVE_TIMEOUT_MS,
      "the leader's store did not arrive",
    );
    const index = await arrived;
    await caughtUp(parts, index);
    if (index < (await marks.leastIndex()))
      throw new Error("the store that came is older than the log of this member");
    await standstill.run(async () => {
      const entries = raft.appliedFrom(index + 1);
      if (entries === undefined)
        throw new Error(`the log does not have the entries after ${index}`);
      await exchange.run(index, async (store) => {
        for (const entry of entries) {
          if (entry.type === raftpb.EntryType.EntryNormal) store.apply(entry, NONE_AWAITED);
          else configuration.replay(store, entry);
          if (store.isFlushDue) await store.flush();
        }
      });
    });
  } finally {
    expected.release();
  }
}

async function askLeader({ store, leader, call, memberId }: RefetchParts): Promise<void> {
  let reason = "there is no leader";
  for (const url of store.current.membership.member(leader.leader)?.peerUrls ?? []) {
    try {
      const { status } = await call(
        url,
        `${STORE_TO_PATH}${idToHex(memberId)}`,
        new Uint8Array(0),
        ASK_TIMEOUT_MS,
      );
      if (status === 200) return;
      reason = `${url} answered ${status}`;
    } catch (error) {
      reason = `${url}: ${(error as Error).message}`;
    }
  }
  throw new Error(`the leader could not be asked for its store: ${reason}`);
}

async function caughtUp({ clock, raft, lifetime }: RefetchParts, index: number): Promise<void> {
  const deadlineMs = clock.monotonicMs() + CATCH_UP_TIMEOUT_MS;
  while (raft.appliedIndex < index) {
    if (lifetime.hasEnded || clock.monotonicMs() > deadlineMs)
      throw new Error(`this member did not get to index ${index} in time`);
    await sleep(clock, POLL_MS);
  }
}

async function beforeEnd<T>(
  clock: Clock,
  stopped: Promise<never>,
  promise: Promise<T>,
  timeoutMs: number,
  text: string,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = clock.after(timeoutMs, () => late.reject(new Error(text)));
  try {
    return await Promise.race([promise, late.promise, stopped]);
  } finally {
    timer.cancel();
  }
}

/** The leader's side. */
export function storeToEndpoint(
  isLeader: () => boolean,
  isMember: (id: bigint) => boolean,
  send: (id: bigint) => void,
): HttpHandler {
  return (request) => {
    if (request.method !== "POST") return plainError(405, "Method Not Allowed", { allow: "POST" });
    const id = idFromHex(request.path.slice(STORE_TO_PATH.length));
    if (id === undefined || !isMember(id)) return plainError(404, "no such member");
    if (!isLeader()) return plainError(503, "this member does not lead");
    send(id);
    return { status: 200, headers: { "content-type": "text/plain; charset=utf-8" }, body: "" };
  };
}
