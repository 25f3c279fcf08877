/**
 * Judges what clients saw: is there one order of all operations that agrees with real time and gives every answer?
 *
 * Revisions decide most of it. A write that was answered has its place, the revision in its answer; a read stands behind the write of its
 * revision. What is left to search for (in the manner of Wing and Gong, with Lowe's memory of configurations) are the places of writes
 * whose outcome nobody knows: revisions that no answered write has must be theirs, each at most once, and every read must come out right.
 *
 *   HIST-1 real time       an answer's revision is not below one that was answered before the call; a write's is above it
 *   HIST-2 one write each  no two writes have one revision, no revision is nobody's
 *   HIST-3 answers         each answer is what the model gives at that place
 *   HIST-4 compaction      what was compacted is not read again
 */
import { type Answer, difference, type ModelRequest, ModelState } from "./model.ts";

export type Outcome =
  | { readonly kind: "answered"; readonly answer: Answer }
  /** It took no effect for sure. */
  | { readonly kind: "refused"; readonly error: string }
  /** It may have taken effect, or may still. */
  | { readonly kind: "unknown"; readonly error: string };

export interface Operation {
  readonly client: string;
  readonly request: ModelRequest;
  readonly serializable: boolean;
  /** 0 for the newest. */
  readonly atRevision: number;
  /** Places of the call and of the return in one order of all calls and returns. */
  readonly calledAt: number;
  returnedAt: number | undefined;
  outcome: Outcome | undefined;
}

/** A compaction, as far as clients know. */
export interface CompactionCall {
  readonly revision: number;
  readonly calledAt: number;
  /** When it was answered without an error. */
  answeredAt: number | undefined;
}

export interface Verdict {
  /** The first thing that is wrong, with the operations around it; undefined if all is well. */
  readonly violation: string | undefined;
  /** False if the search gave up at its bound: no violation was found, and not every order was tried. */
  readonly decided: boolean;
  readonly answered: number;
  readonly unknown: number;
  readonly lastRevision: number;
}

/** Places tried for writes of unknown outcome before the search gives up. */
const MAX_TRIES = 300_000;

function changes(op: Operation, answer: Answer): boolean {
  if (op.request.kind === "range") return false;
  return answer.answers.some((one) => one.kind === "put" || (one.kind === "delete" && one.deleted > 0));
}

/** As JSON, for people: long values are cut. */
export function brief(what: unknown): string {
  const text = JSON.stringify(what, (_key, value) => (typeof value === "string" && value.length > 12 ? `${value.slice(0, 12)}~` : value));
  return text.length > 400 ? `${text.slice(0, 400)}...` : text;
}

function words(op: Operation): string {
  const at = op.atRevision > 0 ? ` at ${op.atRevision}` : "";
  const request = brief(op.request);
  const outcome = brief(op.outcome?.kind === "answered" ? op.outcome.answer : (op.outcome ?? "none"));
  const times = `[${op.calledAt}, ${op.returnedAt ?? "never"}]`;
  return `${op.client} ${times}${op.serializable ? " serializable" : ""} ${request}${at} -> ${outcome}`;
}

interface Parts {
  readonly writes: Map<number, Operation>;
  readonly reads: Map<number, Operation[]>;
  readonly unknown: Operation[];
  /** The highest revision that had been answered when an operation was called. */
  readonly floors: Map<Operation, number>;
  readonly last: number;
}

/** Which request is likely to have made a revision. It only says where the search begins. */
export type Hint = (revision: number) => ModelRequest | undefined;

/** Judges a history that has ended. */
export function checkHistory(
  operations: readonly Operation[],
  compactions: readonly CompactionCall[] = [],
  hint: Hint = () => undefined,
): Verdict {
  let decided = true;
  let violation: string | undefined;
  const parts: Parts = { writes: new Map(), reads: new Map(), unknown: [], floors: new Map(), last: 1 };
  const answered = operations.filter((op) => op.outcome?.kind === "answered");
  let last = 1;
  for (const op of answered) last = Math.max(last, (op.outcome as { answer: Answer }).answer.revision);
  violation = realTime(operations, parts) ?? compacted(operations, compactions);
  if (violation === undefined) {
    const found = place({ ...parts, last }, hint);
    violation = found.violation;
    decided = found.decided;
  }
  return { violation, decided, answered: answered.length, unknown: parts.unknown.length, lastRevision: last };
}

/** HIST-1, and sorts the operations by their revisions. */
function realTime(operations: readonly Operation[], parts: Parts): string | undefined {
  const moments: { at: number; op: Operation; call: boolean }[] = [];
  for (const op of operations) {
    moments.push({ at: op.calledAt, op, call: true });
    if (op.returnedAt !== undefined && op.outcome?.kind === "answered") moments.push({ at: op.returnedAt, op, call: false });
  }
  moments.sort((a, b) => a.at - b.at);
  let highest = 1;
  let highestOp: Operation | undefined;
  for (const { op, call } of moments) {
    if (call) {
      parts.floors.set(op, highest);
      if (op.outcome?.kind !== "answered" && op.outcome?.kind !== "refused" && op.request.kind !== "range") parts.unknown.push(op);
      continue;
    }
    const { answer } = op.outcome as { answer: Answer };
    const floor = parts.floors.get(op)!;
    const isWrite = changes(op, answer);
    if (!op.serializable && (isWrite ? answer.revision <= floor : answer.revision < floor)) {
      const since = highestOp === undefined ? "none" : words(highestOp);
      return `HIST-1: revision ${floor} had been answered before this was called:\n  ${words(op)}\n  highest since:\n  ${since}`;
    }
    if (isWrite) {
      const other = parts.writes.get(answer.revision);
      if (other !== undefined) return `HIST-2: two writes of revision ${answer.revision}:\n  ${words(other)}\n  ${words(op)}`;
      parts.writes.set(answer.revision, op);
    } else {
      const at = op.atRevision > 0 ? op.atRevision : answer.revision;
      const there = parts.reads.get(at);
      if (there === undefined) parts.reads.set(at, [op]);
      else there.push(op);
    }
    if (answer.revision > highest) {
      highest = answer.revision;
      highestOp = op;
    }
  }
  return undefined;
}

/** HIST-4. */
function compacted(operations: readonly Operation[], compactions: readonly CompactionCall[]): string | undefined {
  for (const op of operations) {
    if (op.atRevision === 0) continue;
    if (op.outcome?.kind === "answered" && !op.serializable) {
      const gone = compactions.find((one) => one.answeredAt !== undefined && one.answeredAt < op.calledAt && one.revision > op.atRevision);
      if (gone !== undefined) return `HIST-4: compacted at ${gone.revision} before, and yet read:\n  ${words(op)}`;
    }
    if (op.outcome?.kind === "refused" && op.outcome.error.includes("compacted") && op.returnedAt !== undefined) {
      const cause = compactions.some((one) => one.calledAt < op.returnedAt! && one.revision > op.atRevision);
      if (!cause) return `HIST-4: nobody compacted that:\n  ${words(op)}`;
    }
  }
  return undefined;
}

/** A write of unknown outcome that may stand at a revision, and the state after it. */
interface Candidate {
  readonly op: Operation;
  readonly next: ModelState;
}

/** A place in the search: the state before a revision and which unknown writes are used up by then. */
interface Choice {
  readonly revision: number;
  readonly state: ModelState;
  readonly candidates: readonly Candidate[];
  next: number;
  /** How many unknown writes had been placed before. */
  readonly usedCount: number;
}

/** HIST-2 and HIST-3: gives every revision its write, and looks at every answer. */
function place({ writes, reads, unknown, floors, last }: Parts, hint: Hint): { violation: string | undefined; decided: boolean } {
  // An unknown write at a revision must have been called before anyone saw that revision.
  const firstSeen = new Array<number>(last + 2).fill(Number.POSITIVE_INFINITY);
  const see = (revision: number, op: Operation) => {
    firstSeen[revision] = Math.min(firstSeen[revision], op.returnedAt!);
  };
  for (const [revision, op] of writes) see(revision, op);
  for (const ops of reads.values()) for (const op of ops) see((op.outcome as { answer: Answer }).answer.revision, op);
  for (let revision = last - 1; revision >= 0; revision--) firstSeen[revision] = Math.min(firstSeen[revision], firstSeen[revision + 1]);

  const used: Operation[] = [];
  const choices: Choice[] = [];
  const dead = new Set<string>();
  let tries = 0;
  let deepest = { revision: 0, reason: () => "" };
  let state = new ModelState();
  let revision = 1;

  const fail = (reason: () => string) => {
    if (revision >= deepest.revision) deepest = { revision, reason };
  };
  const readsAgree = (): boolean => {
    for (const op of reads.get(revision) ?? []) {
      const { answer } = op.outcome as { answer: Answer };
      const expected = state.apply(op.request).answer;
      const wrong = difference(op.atRevision > 0 ? { ...expected, revision: answer.revision } : expected, answer);
      if (wrong !== undefined) {
        const at = revision;
        fail(() => `HIST-3: at revision ${at} ${wrong}:\n  ${words(op)}${around(at)}`);
        return false;
      }
    }
    return true;
  };
  const around = (at: number): string => {
    const lines: string[] = [];
    for (let r = Math.max(2, at - 3); r <= Math.min(last, at + 2); r++) {
      lines.push(`\n  revision ${r}: ${writes.has(r) ? words(writes.get(r)!) : "of unknown outcome"}`);
    }
    return lines.join("");
  };
  /** Takes up the last choice that has something left; false if there is none. */
  const goBack = (): boolean => {
    while (choices.length > 0) {
      const choice = choices[choices.length - 1];
      used.length = choice.usedCount;
      while (choice.next < choice.candidates.length) {
        const { op, next } = choice.candidates[choice.next++];
        tries++;
        used.push(op);
        const key = `${choice.revision} ${used.map((one) => one.calledAt).sort((a, b) => a - b)} ${stateKey(next)}`;
        if (dead.has(key)) {
          used.pop();
          continue;
        }
        dead.add(key);
        revision = choice.revision;
        state = next;
        return true;
      }
      choices.pop();
    }
    return false;
  };

  /** What reads show: where a value was written, and what was written at a revision. */
  const writtenAt = new Map<string, number>();
  const shownAt = new Map<number, Map<string, string>>();
  for (const ops of [...reads.values(), [...writes.values()]]) {
    for (const op of ops) {
      for (const one of (op.outcome as { answer: Answer }).answer.answers) {
        if (one.kind !== "range") continue;
        for (const { key, value, mod } of one.kvs) {
          writtenAt.set(`${key} ${value}`, mod);
          const shown = shownAt.get(mod);
          if (shown === undefined) shownAt.set(mod, new Map([[key, value]]));
          else shown.set(key, value);
        }
      }
    }
  }
  const candidatesAt = (at: number, before: ModelState, taken: readonly Operation[]): Candidate[] => {
    const shown = shownAt.get(at);
    const isTaken = new Set(taken);
    const likely = JSON.stringify(hint(at));
    const candidates: Candidate[] = [];
    for (const op of unknown) {
      if (isTaken.has(op) || floors.get(op)! >= at || op.calledAt >= firstSeen[at]) continue;
      if (op.request.kind === "put" && (writtenAt.get(`${op.request.key} ${op.request.value}`) ?? at) !== at) continue;
      const { next } = before.apply(op.request);
      if (next === before) continue;
      let fits = true;
      for (const [key, { mod, value }] of next.keys) if (mod === at && (writtenAt.get(`${key} ${value}`) ?? at) !== at) fits = false;
      for (const [key, value] of shown ?? []) if (next.keys.get(key)?.mod !== at || next.keys.get(key)?.value !== value) fits = false;
      if (!fits) continue;
      if (likely !== undefined && JSON.stringify(op.request) === likely) candidates.unshift({ op, next });
      else candidates.push({ op, next });
    }
    return candidates;
  };

  let fine = readsAgree();
  for (;;) {
    if (tries > MAX_TRIES) return { violation: undefined, decided: false };
    if (!fine) {
      if (!goBack()) return { violation: deepest.reason(), decided: true };
      fine = readsAgree();
      continue;
    }
    if (revision === last) return { violation: undefined, decided: true };
    revision++;
    const write = writes.get(revision);
    if (write !== undefined) {
      const { answer, next } = state.apply(write.request);
      const wrong = difference(answer, (write.outcome as { answer: Answer }).answer);
      if (wrong !== undefined || next === state) {
        const at = revision;
        fail(() => `HIST-3: at revision ${at} ${wrong ?? "the model writes nothing"}:\n  ${words(write)}${around(at)}`);
        fine = false;
        continue;
      }
      state = next;
      fine = readsAgree();
      continue;
    }
    const at = revision;
    const candidates = candidatesAt(at, state, used);
    if (candidates.length === 0) fail(() => `HIST-2: revision ${at} is nobody's write${around(at)}`);
    choices.push({ revision, state, candidates, next: 0, usedCount: used.length });
    fine = false;
  }
}

function stateKey(state: ModelState): string {
  let key = "";
  for (const { key: name, value, mod, version, create } of state.range({ key: "\0", end: "\xff" })) {
    // Values begin with what makes them unique.
    key += `${name}:${value.slice(0, 16)}:${create}:${mod}:${version};`;
  }
  return key;
}
