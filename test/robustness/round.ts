/**
 * One round: clients, leases and watches under faults; then all is healed and progress is demanded;
 * then the history is judged, and the keys are wiped and compacted away, so that the next round
 * begins with nothing.
 *
 * Demanded after the heal, each within a bound: every member is ready; a write and a linearizable
 * read through each; leases without keep-alives end; every watch has all; all members have one
 * HashKV.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "@quorate/host";
import {
  AlarmRequest_AlarmAction,
  AlarmType,
  fromLatin1,
  KVService,
  MaintenanceService,
} from "@quorate/proto";
import { assertEqualHashes } from "../support/checks.ts";
import { TestClient } from "../support/client.ts";
import { liveAsAdministrator, usersDiffer } from "./administrator.ts";
import { HashBook } from "./hash-book.ts";
import type { Judgement } from "./judge.ts";
import { judgeFile } from "./judging.ts";
import { END_KEY, FIRST_KEY, LEASE_KEYS } from "./keys.ts";
import { liveAsLeaseOwner } from "./leases.ts";
import { liveAsLockOwner } from "./locks.ts";
import type { RunningCluster } from "./members.ts";
import { removeNobody } from "./membership.ts";
import { Nemesis } from "./nemesis.ts";
import { type Counts, Recorder } from "./recorder.ts";
import { Watcher } from "./watchers.ts";
import { liveAsClient, type Pace, type Plant, RecordingClient, Shared } from "./workload.ts";

const ALL_KEYS = { key: FIRST_KEY, end: END_KEY };
const RETRY_MS = 100;
const SETTLED_CALL_MS = 10_000;

/** A promise that was broken, or a check that could not be made. */
export class BrokenPromise extends Error {}

export interface RoundOptions {
  readonly random: Random;
  readonly faultMs: number;
  readonly faultEveryMs: number;
  readonly maxPauseMs: number;
  readonly clients: number;
  readonly leaseOwners: number;
  readonly lockOwners: number;
  /** Whether users and roles are changed; they are switched on then. */
  readonly hasUsers: boolean;
  readonly watchers: number;
  readonly pace: Pace;
  /** How long each demand after the heal may take. */
  readonly healLimitMs: number;
  readonly historyPath: string;
  /** The revision at which all keys were gone. */
  readonly base: number;
  readonly plant: Plant | undefined;
  /** Resolves with words when a member ended that should not have. */
  readonly ended: Promise<string>;
  /** Called with what happens. */
  readonly log: (text: string) => void;
}

/** What a progress line can show while a round is under way. */
export interface RoundProgress {
  phase: string;
  counts: Counts;
  active: () => string[];
}

export interface RoundResult {
  readonly judgement: Judgement;
  readonly faults: ReadonlyMap<string, number>;
  readonly counts: Counts;
  /** HashKVs at compactions that were equal to another member's. */
  readonly hashes: number;
  /** The longest time in which no write was answered, in milliseconds. */
  readonly longestGapMs: number;
  readonly acceptedConnections: number;
}

/** Runs a round. Throws BrokenPromise. `progress` is called with the state to show. */
export async function runRound(
  running: RunningCluster,
  options: RoundOptions,
  progress: (state: RoundProgress) => void,
): Promise<RoundResult> {
  const { random, healLimitMs } = options;
  const recorder = new Recorder(options.historyPath, options.base);
  const hashes = new HashBook(running);
  const shared = new Shared(running, recorder, options.pace, options.base, options.plant);
  shared.compacted = (revision) => hashes.compare(revision);
  const nemesis = new Nemesis(running, random.fork("nemesis"), {
    everyMs: options.faultEveryMs,
    maxPauseMs: options.maxPauseMs,
    log: (text) => {
      recorder.write({ t: "fault", at: recorder.now(), text });
      options.log(text);
    },
  });
  const state: RoundProgress = {
    phase: "faults",
    counts: recorder.counts,
    active: () => nemesis.active,
  };
  progress(state);
  const watchers = Array.from({ length: options.watchers }, (_, i) => {
    // Some see all, so that every event has a witness; others a part.
    const range =
      i % 2 === 0
        ? ALL_KEYS
        : [{ key: "ka", end: "" }, { key: "kc", end: "kf" }, LEASE_KEYS][random.below(3)];
    return new Watcher(`w${i}`, shared, random.fork(`watcher ${i}`), range);
  });
  const lives = [
    ...Array.from({ length: options.clients }, (_, i) =>
      liveAsClient(`c${i}`, shared, random.fork(`client ${i}`)),
    ),
    ...Array.from({ length: options.leaseOwners }, (_, i) =>
      liveAsLeaseOwner(`l${i}`, shared, random.fork(`owner ${i}`)),
    ),
    ...Array.from({ length: options.lockOwners }, (_, i) =>
      liveAsLockOwner(`o${i}`, shared, random.fork(`lock owner ${i}`)),
    ),
    ...(options.hasUsers ? [liveAsAdministrator(running, shared, random.fork("users"))] : []),
  ];
  // One that throws ends the round with its error: that is a defect of the harness.
  const work = Promise.all(lives);
  let hasEnded: string | undefined;
  options.ended.then((text) => {
    hasEnded = text;
  });
  try {
    nemesis.start();
    await Promise.race([delay(options.faultMs), options.ended, work]);
    state.phase = "heal";
    await nemesis.heal();
    running.wires.heal();
    const check = (): void => {
      if (hasEnded !== undefined) throw new BrokenPromise(hasEnded);
    };
    check();
    await ready(running, healLimitMs, check);
    await removeNobody(running, healLimitMs);
    state.phase = "progress";
    await demandProgress(running, shared, healLimitMs, check);
    shared.stopped = true;
    await work;
    // Once more: whatever clients left under way has been decided when later writes through the
    // same members are.
    await demandProgress(running, shared, healLimitMs, check);
    state.phase = "leases";
    const last = await settle(running, shared, healLimitMs, check);
    state.phase = "watches";
    await until(healLimitMs, check, async () => {
      const late = watchers.find((watcher) => watcher.through < last);
      return late === undefined
        ? undefined
        : `LIVENESS: watch ${late.name} has come to revision ${late.through} of ${last}`;
    });
    for (const watcher of watchers) watcher.settle(last);
    state.phase = "hashes";
    await assertEqualHashes(running.cluster).catch((error: Error) => {
      throw new BrokenPromise(`HASH: ${error.message}`);
    });
    await hashes.settled();
    const trouble =
      hashes.difference ??
      (options.hasUsers ? await usersDiffer(running) : undefined) ??
      (await corruptAlarm(running));
    if (trouble !== undefined) throw new BrokenPromise(trouble);
    check();
  } finally {
    shared.stopped = true;
    for (const watcher of watchers) watcher.close();
    await nemesis.heal().catch(() => {});
    await work.catch(() => {});
    recorder.close();
  }
  state.phase = "judging";
  const judgement = await judgeFile(options.historyPath);
  if (judgement.violation !== undefined) throw new BrokenPromise(judgement.violation);
  return {
    judgement,
    faults: nemesis.counts,
    counts: recorder.counts,
    hashes: hashes.compared,
    longestGapMs: recorder.longestGapMs,
    acceptedConnections: running.wires.accepted,
  };
}

/**
 * Tries until there is no trouble any more. Throws BrokenPromise with the last trouble when the
 * time is up.
 */
async function until(
  limitMs: number,
  check: () => void,
  trouble: () => Promise<string | undefined>,
): Promise<void> {
  const endMs = performance.now() + limitMs;
  for (;;) {
    check();
    const what = await trouble();
    if (what === undefined) return;
    if (performance.now() > endMs) throw new BrokenPromise(`${what}, ${limitMs} ms after the heal`);
    await delay(RETRY_MS);
  }
}

async function ready({ nodes }: RunningCluster, limitMs: number, check: () => void): Promise<void> {
  await Promise.all(
    nodes.map((node) =>
      until(limitMs, check, async () => {
        if (!node.test.isRunning) return `LIVENESS: ${node.name} does not run`;
        const error = await node.test.waitReady(5000).then(
          () => undefined,
          (reason: Error) => reason,
        );
        return error && `LIVENESS: ${node.name} is not ready: ${error.message.split("\n")[0]}`;
      }),
    ),
  );
}

/** An alarm that says that members differ, of any member; undefined if there is none. */
async function corruptAlarm({ nodes, cluster }: RunningCluster): Promise<string | undefined> {
  for (const { name, test } of nodes) {
    const client = new TestClient(test.clientAddress, cluster.identity);
    try {
      const { alarms } = await client.call(
        MaintenanceService.methods.Alarm,
        { action: AlarmRequest_AlarmAction.GET },
        SETTLED_CALL_MS,
      );
      if (alarms.some(({ alarm }) => alarm === AlarmType.CORRUPT))
        return `HASH: ${name} knows of an alarm: member ${alarms[0]!.memberID} differs`;
    } finally {
      client.close();
    }
  }
  return undefined;
}

/** A write and a linearizable read through each member. */
async function demandProgress(
  running: RunningCluster,
  shared: Shared,
  limitMs: number,
  check: () => void,
): Promise<void> {
  const turn = shared.recorder.now();
  for (const [index, { name }] of running.nodes.entries()) {
    const client = new RecordingClient(`probe${turn}`, shared, index);
    let attempt = 0;
    const demand = (request: Parameters<RecordingClient["call"]>[0], what: string) =>
      until(limitMs, check, async () => {
        const sent =
          request.kind === "put" ? { ...request, value: `${request.value}.${attempt++}` } : request;
        const outcome = await client.call(sent, {}, SETTLED_CALL_MS);
        if (outcome.kind === "answered") return undefined;
        client.moveTo(index);
        return `LIVENESS: no ${what} through ${name}: ${outcome.error}`;
      });
    try {
      await demand({ kind: "put", key: "kz", value: `probe.${turn}.${name}` }, "write");
      await demand({ kind: "range", ...ALL_KEYS }, "linearizable read");
    } finally {
      client.close();
    }
  }
}

/** Waits until all leases have ended, then reads all on every member; returns the last revision. */
async function settle(
  running: RunningCluster,
  shared: Shared,
  limitMs: number,
  check: () => void,
): Promise<number> {
  const client = new RecordingClient("settler", shared, 0);
  let last = shared.base;
  try {
    await until(limitMs, check, async () => {
      const outcome = await client.call({ kind: "range", ...LEASE_KEYS }, {}, SETTLED_CALL_MS);
      if (outcome.kind !== "answered") return `LIVENESS: no linearizable read: ${outcome.error}`;
      const [range] = outcome.answer.answers;
      const left = range?.kind === "range" ? range.kvs : [];
      return left.length === 0
        ? undefined
        : `LEASE-3: ${left.length} keys of leases without keep-alives are there, such as ${left[0].key}`;
    });
    shared.recorder.write({ t: "leases-gone", atMs: shared.recorder.now() / 1000 });
    for (const index of running.nodes.keys()) {
      client.moveTo(index);
      await until(limitMs, check, async () => {
        const outcome = await client.call({ kind: "range", ...ALL_KEYS }, {}, SETTLED_CALL_MS);
        if (outcome.kind !== "answered") return `LIVENESS: no linearizable read: ${outcome.error}`;
        last = Math.max(last, outcome.answer.revision);
        return undefined;
      });
    }
  } finally {
    client.close();
  }
  return last;
}

/**
 * Deletes all keys and compacts the history away; returns the revision at which nothing was left,
 * which every member has reached.
 */
export async function wipe(running: RunningCluster, limitMs: number): Promise<number> {
  const { Range, DeleteRange, Compact } = KVService.methods;
  const range = { key: fromLatin1(FIRST_KEY), rangeEnd: fromLatin1(END_KEY) };
  let base = 0;
  for (const [index, node] of running.nodes.entries()) {
    const client = new TestClient(node.test.clientAddress, running.cluster.identity);
    try {
      await until(
        limitMs,
        () => {},
        async () => {
          try {
            if (index === 0) await client.call(DeleteRange, range, SETTLED_CALL_MS);
            const { header, count } = await client.call(Range, range, SETTLED_CALL_MS);
            if (count > 0) return `${count} keys are left after all were deleted`;
            if (index === 0) base = header!.revision;
            return undefined;
          } catch (error) {
            return `LIVENESS: wiping fails: ${(error as Error).message}`;
          }
        },
      );
      const isLast = index === running.nodes.length - 1;
      // A client may have compacted as far already.
      if (isLast)
        await client
          .call(Compact, { revision: base, physical: true }, SETTLED_CALL_MS)
          .catch(() => {});
    } finally {
      client.close();
    }
  }
  return base;
}
