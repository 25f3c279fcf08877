/**
 * Fetching the leader's store in the place of this member's own, without Raft: what both have in
 * common is the log.
 *
 *     POST /members/store-to/MEMBER-ID (hexadecimal)   the leader streams its store to that member
 *                                                      as it does for one that is far behind
 */

import type { HttpHandler } from "@quorate/host";
import { type Clock, plainError } from "@quorate/host";
import { idFromHex, idToHex, raftpb } from "@quorate/proto";
import type { Store } from "@quorate/store";
import type { PeerCall } from "@quorate/transport";

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

/** The receiving end for a store that this member has requested (apply/snapshots.ts). */
export interface StoreReceiver {
  expect(): {
    begun: Promise<void>;
    arrived: Promise<number>;
    leastIndex: () => Promise<number>;
    release: () => void;
  };
}

export interface RefetchParts {
  readonly memberId: bigint;
  readonly leaderUrls: () => readonly string[];
  readonly call: PeerCall;
  readonly snapshots: StoreReceiver;
  readonly appliedIndex: () => number;
  readonly hasEnded: () => boolean;
  /**
   * Entries from the one after `index` to the last that is applied; undefined where the log begins
   * later.
   */
  readonly entriesAfter: (index: number) => readonly raftpb.Entry[] | undefined;
  /** Runs the task while the member's loop applies nothing. */
  readonly standStill: (task: () => Promise<void>) => Promise<void>;
  /** Puts the received store in place. What fails in it ends the member. */
  readonly exchange: (index: number, replay: (store: Store) => Promise<void>) => Promise<void>;
  /** Applies a configuration change once more, to a store alone. */
  readonly replayConfChange: (store: Store, entry: raftpb.Entry) => void;
  readonly clock: Clock;
  /** Rejects when the member ends. */
  readonly stopped: Promise<never>;
}

/**
 * Rejects where it did not work; the store in use is then the old one, whole, or the new one,
 * whole.
 */
export async function refetchStore(parts: RefetchParts): Promise<void> {
  const expected = parts.snapshots.expect();
  try {
    await askLeader(parts);
    await within(
      parts,
      expected.begun,
      BEGIN_TIMEOUT_MS,
      "the leader's store did not begin to come",
    );
    const index = await within(
      parts,
      expected.arrived,
      ARRIVE_TIMEOUT_MS,
      "the leader's store did not arrive",
    );
    await caughtUp(parts, index);
    if (index < (await expected.leastIndex()))
      throw new Error("the store that came is older than the log of this member");
    await parts.standStill(async () => {
      const entries = parts.entriesAfter(index);
      if (entries === undefined)
        throw new Error(`the log does not have the entries after ${index}`);
      await parts.exchange(index, async (store) => {
        for (const entry of entries) {
          if (entry.type === raftpb.EntryType.EntryNormal) store.apply(entry, () => false);
          else parts.replayConfChange(store, entry);
          if (store.isFlushDue) await store.flush();
        }
      });
    });
  } finally {
    expected.release();
  }
}

async function askLeader({ leaderUrls, call, memberId }: RefetchParts): Promise<void> {
  let reason = "there is no leader";
  for (const url of leaderUrls()) {
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

async function caughtUp(
  { clock, appliedIndex, hasEnded }: RefetchParts,
  index: number,
): Promise<void> {
  const deadlineMs = clock.monotonicMs() + CATCH_UP_TIMEOUT_MS;
  while (appliedIndex() < index) {
    if (hasEnded() || clock.monotonicMs() > deadlineMs)
      throw new Error(`this member did not get to index ${index} in time`);
    await new Promise<void>((resolve) => clock.after(POLL_MS, resolve));
  }
}

async function within<T>(
  { clock, stopped }: RefetchParts,
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
