/**
 * Judges the history of a round with the simulator's judges: linearizability by revisions and by
 * search, watch streams, leases.
 *
 * A round begins with all of its keys gone, at some revision. The judges begin at revision 1 with
 * nothing, so all revisions of a history are moved by the same amount first. A lease that ends
 * deletes its key, at a revision that no client wrote: such a deletion stands in the history as a
 * write of unknown outcome that no client called before the lease's time was up, or its owner asked
 * for its end.
 */
import {
  type Answer,
  type CompactionCall,
  changesKeys,
  checkHistory,
  checkLeases,
  checkLinearizable,
  checkWatchStreams,
  eventsBetween,
  historyPicture,
  judgeHistory,
  type LeaseRecord,
  type ModelCompare,
  type ModelRequest,
  ModelState,
  type Operation,
  type Outcome,
  replay,
  type WatchBatch,
  type WatchEvent,
  type WatchStream,
} from "@quorate/sim";
import { checkLocks, type HeldLock } from "./held-locks.ts";
import type { Line, OpLine } from "./recorder.ts";

/** What came of it. */
export interface Judgement {
  /** Undefined if all is well. */
  readonly violation: string | undefined;
  /** False if a search for an order of the calls gave up at its bound. */
  readonly decided: boolean;
  readonly operations: number;
  readonly unknown: number;
  readonly revisions: number;
  readonly streams: number;
  readonly events: number;
  readonly leases: number;
  /** Serializable reads of a state before the round: too old to be judged. */
  readonly tooOld: number;
}

/** A history as the judges take it: revisions moved, ends of leases added. */
export interface History {
  /** With the ends of leases, which no client called. */
  readonly operations: readonly Operation[];
  /** How many these are. */
  readonly ends: number;
  readonly compactions: readonly CompactionCall[];
  readonly streams: readonly WatchStream[];
  readonly leases: readonly LeaseRecord[];
  readonly leasesGoneMs: number | undefined;
  readonly locks: readonly HeldLock[];
  readonly tooOld: number;
}

/** Configurations that the second opinion enters before it gives up. */
const MAX_STATES = 200_000;
/** Revisions before and after the wrong one that a picture shows. */
const PICTURE_REVISIONS = 8;

type Move = (revision: number) => number;

/** A request whose revisions are moved. */
export function moveRequest(request: ModelRequest, move: Move): ModelRequest {
  if (request.kind !== "txn") return request;
  const moveCompare = (one: ModelCompare): ModelCompare =>
    (one.target === "mod" || one.target === "create") && one.operand !== 0
      ? { ...one, operand: move(one.operand as number) }
      : one;
  return { ...request, compares: request.compares.map(moveCompare) };
}

/** An answer whose revisions are moved. */
export function moveAnswer(answer: Answer, move: Move): Answer {
  const answers = answer.answers.map((one) =>
    one.kind === "range"
      ? {
          ...one,
          kvs: one.kvs.map((kv) => ({ ...kv, create: move(kv.create), mod: move(kv.mod) })),
        }
      : one,
  );
  return { ...answer, revision: move(answer.revision), answers };
}

const moveEvent = (event: WatchEvent, move: Move): WatchEvent => ({
  ...event,
  mod: move(event.mod),
  create: event.type === "put" ? move(event.create) : 0,
});

/** Reads a history's lines. Throws if they begin with no base. */
export function historyOf(lines: readonly Line[]): History {
  const first = lines[0];
  if (first?.t !== "base") throw new Error("a history begins with the revision of its beginning");
  const move: Move = (revision) => revision - first.revision + 1;
  const operations: Operation[] = [];
  const compactions: CompactionCall[] = [];
  const open = new Map<
    number,
    { stream: Omit<WatchStream, "batches" | "through">; batches: WatchBatch[]; through: number }
  >();
  const leaseLines: Extract<Line, { t: "lease" }>[] = [];
  const goneMs = new Map<string, number>();
  const locks: HeldLock[] = [];
  let leasesGoneMs: number | undefined;
  let tooOld = 0;
  for (const line of lines) {
    if (line.t === "op") {
      const moved = moveOperation(line, move);
      if (moved === undefined) tooOld++;
      else operations.push(moved);
    } else if (line.t === "compaction") {
      const { calledAt, answeredAt } = line;
      compactions.push({ revision: move(line.revision), calledAt, answeredAt });
    } else if (line.t === "stream") {
      const { name, key, end, from } = line;
      open.set(line.id, { stream: { name, key, end, from: move(from) }, batches: [], through: 0 });
    } else if (line.t === "batch") {
      const events = line.events.map((event) => moveEvent(event, move));
      open.get(line.id)!.batches.push({ revision: move(line.revision), events });
      for (const { type, key } of events)
        if (type === "delete" && !goneMs.has(key)) goneMs.set(key, line.at / 1000);
    } else if (line.t === "through") open.get(line.id)!.through = move(line.revision);
    else if (line.t === "lease") leaseLines.push(line);
    else if (line.t === "lock") locks.push(line);
    else if (line.t === "leases-gone") leasesGoneMs = line.atMs;
  }
  noteReads(operations, goneMs);
  for (const lease of leaseLines) operations.push(endOf(lease));
  const streams = [...open.values()].map(({ stream, batches, through }) => ({
    ...stream,
    batches,
    through,
  }));
  const leases = leaseLines
    // If it is unknown whether the key was put, it need not be gone.
    .filter(({ key, wasPut }) => wasPut || goneMs.has(key))
    .map(({ name, key, renewals, revokeCalledMs }) => ({
      name: `${name} of ${key}`,
      renewals,
      revokeCalledMs,
      goneMs: goneMs.get(key),
    }));
  return {
    operations,
    ends: leaseLines.length,
    compactions,
    streams,
    leases,
    leasesGoneMs,
    locks,
    tooOld,
  };
}

/**
 * A linearizable read that does not find a lease's key, after that was put, knows that it is gone:
 * even if no watch has reported it.
 */
function noteReads(operations: readonly Operation[], goneMs: Map<string, number>): void {
  const putAt = new Map<string, number>();
  for (const { request, outcome, returnedAt } of operations) {
    const isLeased =
      request.kind === "put" && request.lease !== undefined && outcome?.kind === "answered";
    if (isLeased) putAt.set(request.key, returnedAt!);
  }
  for (const { request, outcome, serializable, atRevision, calledAt, returnedAt } of operations) {
    if (request.kind !== "range" || outcome?.kind !== "answered" || serializable || atRevision > 0)
      continue;
    const [answer] = outcome.answer.answers;
    const found = new Set(answer?.kind === "range" ? answer.kvs.map(({ key }) => key) : []);
    const looked =
      request.end === ""
        ? [request.key]
        : [...putAt.keys()].filter((key) => key >= request.key && key < request.end);
    for (const key of looked) {
      const put = putAt.get(key);
      if (put === undefined || calledAt < put || found.has(key)) continue;
      goneMs.set(key, Math.min(goneMs.get(key) ?? Number.POSITIVE_INFINITY, returnedAt! / 1000));
    }
  }
}

function moveOperation(line: OpLine, move: Move): Operation | undefined {
  const { client, member, serializable, calledAt, returnedAt } = line;
  let outcome: Outcome = line.outcome;
  if (outcome.kind === "answered") {
    outcome = { kind: "answered", answer: moveAnswer(outcome.answer, move) };
    if (serializable && outcome.answer.revision < 1) return undefined;
  }
  const atRevision = line.atRevision > 0 ? move(line.atRevision) : 0;
  const request = moveRequest(line.request, move);
  return {
    client: `${client}@${member}`,
    request,
    serializable,
    atRevision,
    calledAt,
    returnedAt,
    outcome,
  };
}

/**
 * The end of a lease as a write that may have happened, once it may. Its key is its own and was put
 * once.
 */
function endOf({ name, key, renewals, revokeCalledMs }: Extract<Line, { t: "lease" }>): Operation {
  const dueMs = Math.max(...renewals.map(({ calledMs, ttlMs }) => calledMs + ttlMs));
  return {
    client: `end of lease ${name}`,
    request: { kind: "delete", key, end: "" },
    serializable: false,
    atRevision: 0,
    calledAt: Math.min(dueMs, revokeCalledMs ?? Number.POSITIVE_INFINITY) * 1000,
    returnedAt: undefined,
    outcome: { kind: "unknown", error: "there is no response" },
  };
}

/**
 * Which request of unknown outcome made a revision, by what the streams say of it: a value is
 * written once to a key.
 */
function hintsOf(
  operations: readonly Operation[],
  streams: readonly WatchStream[],
): (revision: number) => ModelRequest | undefined {
  const byValue = new Map<string, ModelRequest>();
  const ends = new Map<string, ModelRequest>();
  for (const { request, outcome } of operations) {
    if (outcome?.kind !== "unknown") continue;
    const ops = request.kind === "txn" ? [...request.success, ...request.failure] : [request];
    for (const op of ops) {
      if (op.kind === "put") byValue.set(`${op.key} ${op.value}`, request);
      if (op.kind === "delete" && op.end === "" && request.kind !== "txn")
        ends.set(op.key, request);
    }
  }
  const hints = new Map<number, ModelRequest>();
  for (const { batches } of streams) {
    for (const { events } of batches) {
      for (const { type, key, value, mod } of events) {
        const request = type === "put" ? byValue.get(`${key} ${value}`) : ends.get(key);
        if (request !== undefined && !hints.has(mod)) hints.set(mod, request);
      }
    }
  }
  return (revision) => hints.get(revision);
}

/**
 * What watchers saw of a revision, and what they did not see of it, must be what the write did that
 * is placed there.
 */
function witnessesOf(
  streams: readonly WatchStream[],
): (revision: number, before: ModelState, next: ModelState) => boolean {
  const textOf = (events: readonly WatchEvent[]): string =>
    JSON.stringify(events.map(({ type, key, value }) => [type, key, value]).sort());
  const watches = streams.map(({ key, end, from, batches }) => {
    let last = 0;
    const seen = new Map<number, WatchEvent[]>();
    for (const { revision, events } of batches) {
      last = Math.max(last, events.at(-1)?.mod ?? revision);
      for (const [mod, group] of Map.groupBy(events, (event) => event.mod)) seen.set(mod, group);
    }
    return { key, end, from, last, seen };
  });
  return (revision, before, next) => {
    const events = eventsBetween(before, next);
    return watches.every(({ key, end, from, last, seen }) => {
      if (revision < from || revision > last) return true;
      const covered = events.filter((event) =>
        end === "" ? event.key === key : event.key >= key && event.key < end,
      );
      return textOf(covered) === textOf(seen.get(revision) ?? []);
    });
  };
}

/** Judges a history. */
export function judge(lines: readonly Line[]): Judgement {
  const history = historyOf(lines);
  const { operations, ends, compactions, streams, leases, leasesGoneMs, tooOld } = history;
  const verdict = checkHistory(
    operations,
    compactions,
    hintsOf(operations, streams),
    witnessesOf(streams),
  );
  // A second opinion, which knows nothing of revisions.
  const bySearch =
    verdict.violation === undefined && verdict.decided
      ? checkLinearizable(operations, {
          places: verdict.placed,
          leaseEnds: verdict.leaseEnds,
          maxStates: MAX_STATES,
        })
      : undefined;
  let { violation } = verdict;
  if (bySearch?.result === "not-linearizable")
    violation = `not linearizable, whatever the revisions:\n  ${bySearch.stuck.map(brief).join("\n  ")}`;
  violation ??= checkLocks(history.locks);
  violation ??= checkLeases(leases, { goneByMs: leasesGoneMs, drift: 0 });
  if (violation === undefined) {
    const writes = writesOf(operations);
    for (const [{ request }, revision] of verdict.placed) writes.set(revision, request);
    const last = Math.max(
      verdict.lastRevision,
      ...streams.flatMap(({ batches }) =>
        batches.flatMap(({ events }) => events.map((e) => e.mod)),
      ),
    );
    const replayed = replay(new ModelState(), last, writes, streams);
    violation = replayed.violation ?? checkWatchStreams(replayed.events, streams);
  }
  return {
    violation,
    decided: verdict.decided && bySearch?.result !== "undecided",
    operations: operations.length - ends,
    unknown: verdict.unknown - ends,
    revisions: verdict.lastRevision,
    streams: streams.length,
    events: streams.reduce(
      (sum, { batches }) => sum + batches.reduce((n, { events }) => n + events.length, 0),
      0,
    ),
    leases: leases.length,
    tooOld,
  };
}

/** The answered writes, by their revisions. */
function writesOf(operations: readonly Operation[]): Map<number, ModelRequest> {
  const writes = new Map<number, ModelRequest>();
  for (const { request, outcome } of operations) {
    if (request.kind === "range" || outcome?.kind !== "answered") continue;
    if (changesKeys(request, outcome.answer)) writes.set(outcome.answer.revision, request);
  }
  return writes;
}

const brief = (op: Operation): string => JSON.stringify(op).slice(0, 400);

/**
 * A page that shows the smallest part of the calls that still fails. Finding that takes minutes.
 * Undefined if the calls are well.
 */
export function smallestPicture(lines: readonly Line[], title: string): string | undefined {
  const { operations, compactions, streams } = historyOf(lines);
  return judgeHistory({ operations, compactions }, { title, hint: hintsOf(operations, streams) })
    .picture;
}

/**
 * A page that shows the calls around the revision that a violation names; undefined if it names
 * none.
 */
export function pictureAround(
  lines: readonly Line[],
  title: string,
  violation: string,
): string | undefined {
  const at = Number(/revision (\d+)/.exec(violation)?.[1]);
  if (!(at > 0)) return undefined;
  const { operations } = historyOf(lines);
  const near = operations.filter(
    ({ outcome }) =>
      outcome?.kind === "answered" && Math.abs(outcome.answer.revision - at) <= PICTURE_REVISIONS,
  );
  return historyPicture({ title, why: violation, operations: near, prefix: [], stuck: [] });
}
