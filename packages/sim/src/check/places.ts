/**
 * Assigns every revision its write: known writes stand where their answers say, those of unknown
 * outcome are searched for.
 */
import { type Answer, difference, type ModelRequest, ModelState } from "../model.ts";
import { type Operation, words } from "./operation.ts";
import { opsOf } from "./parts.ts";

/** Places tried for writes of unknown outcome before the search gives up. */
const MAX_TRIES = 300_000;

/** A history sorted by the revisions in its answers. */
export interface Parts {
  readonly writes: Map<number, Operation>;
  readonly reads: Map<number, Operation[]>;
  readonly unknown: Operation[];
  /** The highest revision that had been answered when an operation was called. */
  readonly floors: Map<Operation, number>;
  readonly last: number;
}

/**
 * Which request made a revision by the log. For clients' requests it only says where the search
 * begins; the end of a lease is no client's request and stands where the log has it.
 */
export type Hint = (revision: number) => ModelRequest | undefined;

/**
 * False if others saw a revision change the state otherwise than from `before` to `next`: then that
 * write cannot be the one.
 */
export type Fits = (revision: number, before: ModelState, next: ModelState) => boolean;

/** A write of unknown outcome that may stand at a revision, and the state after it. */
interface Candidate {
  readonly op: Operation;
  readonly next: ModelState;
}

/**
 * A place in the search: the state before a revision and which unknown writes are used up by then.
 */
interface Choice {
  readonly revision: number;
  readonly state: ModelState;
  readonly candidates: readonly Candidate[];
  next: number;
  /** How many unknown writes had been placed before. */
  readonly usedCount: number;
}

/** What the search for places came to. */
export interface Places {
  readonly violation: string | undefined;
  readonly decided: boolean;
  /**
   * The revisions found for writes of unknown outcome, if all is well; those that are not in it had
   * no effect.
   */
  readonly placed: ReadonlyMap<Operation, number>;
  /** The revisions at which leases ended, if all is well. */
  readonly leaseEnds: ReadonlyMap<string, number>;
}

const NO_PLACES: Pick<Places, "placed" | "leaseEnds"> = { placed: new Map(), leaseEnds: new Map() };

/** HIST-2 and HIST-3: assigns every revision its write, and looks at every answer. */
export function place(
  { writes, reads, unknown, floors, last }: Parts,
  hint: Hint,
  mayBe: Fits,
): Places {
  // An unknown write at a revision must have been called before anyone saw that revision.
  const firstSeen = new Array<number>(last + 2).fill(Number.POSITIVE_INFINITY);
  const see = (revision: number, op: Operation) => {
    firstSeen[revision] = Math.min(firstSeen[revision], op.returnedAt!);
  };
  for (const [revision, op] of writes) see(revision, op);
  for (const ops of reads.values())
    for (const op of ops) see((op.outcome as { answer: Answer }).answer.revision, op);
  for (let revision = last - 1; revision >= 0; revision--)
    firstSeen[revision] = Math.min(firstSeen[revision], firstSeen[revision + 1]);

  const used: Operation[] = [];
  const leaseEnds = new Map<string, number>();
  const choices: Choice[] = [];
  const dead = new Set<string>();
  const nameOf = stateNamer();
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
      const wrong = difference(
        op.atRevision > 0 ? { ...expected, revision: answer.revision } : expected,
        answer,
      );
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
      lines.push(
        `\n  revision ${r}: ${writes.has(r) ? words(writes.get(r)!) : "of unknown outcome"}`,
      );
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
        const key = `${choice.revision} ${used.map((one) => one.calledAt).sort((a, b) => a - b)} ${nameOf(next)}`;
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

  /** How many requests put a value under a key. */
  const writers = new Map<string, number>();
  /** Keys whose value may be written again as it is. */
  const rewritten = new Set<string>();
  for (const { request } of [...writes.values(), ...unknown]) {
    for (const op of opsOf(request))
      if (op.kind === "put" && op.ignoreValue === true) rewritten.add(op.key);
    for (const one of new Set(putsOf(request))) writers.set(one, (writers.get(one) ?? 0) + 1);
  }
  /**
   * What reads show: where a value was written, if only one request writes it, and what was written
   * at a revision.
   */
  const writtenAt = new Map<string, number>();
  const shownAt = new Map<number, Map<string, string>>();
  for (const ops of [...reads.values(), [...writes.values()]]) {
    for (const op of ops) {
      for (const one of (op.outcome as { answer: Answer }).answer.answers) {
        if (one.kind !== "range") continue;
        for (const { key, value, mod } of one.kvs) {
          // Of keys alone the values are not known.
          if (value === "") continue;
          const name = `${key} ${value}`;
          if (writers.get(name) === 1 && !rewritten.has(key)) writtenAt.set(name, mod);
          const shown = shownAt.get(mod);
          if (shown === undefined) shownAt.set(mod, new Map([[key, value]]));
          else shown.set(key, value);
        }
      }
    }
  }
  const candidatesAt = (
    at: number,
    before: ModelState,
    taken: readonly Operation[],
  ): Candidate[] => {
    const shown = shownAt.get(at);
    const isTaken = new Set(taken);
    const likely = JSON.stringify(hint(at));
    const candidates: Candidate[] = [];
    for (const op of unknown) {
      if (isTaken.has(op) || floors.get(op)! >= at || op.calledAt >= firstSeen[at]) continue;
      if (
        op.request.kind === "put" &&
        (writtenAt.get(`${op.request.key} ${op.request.value}`) ?? at) !== at
      )
        continue;
      const { next } = before.apply(op.request);
      if (next === before || !mayBe(at, before, next)) continue;
      let fits = true;
      for (const [key, { mod, value }] of next.keys)
        if (mod === at && (writtenAt.get(`${key} ${value}`) ?? at) !== at) fits = false;
      for (const [key, value] of shown ?? [])
        if (next.keys.get(key)?.mod !== at || next.keys.get(key)?.value !== value) fits = false;
      if (!fits) continue;
      if (likely !== undefined && JSON.stringify(op.request) === likely)
        candidates.unshift({ op, next });
      else candidates.push({ op, next });
    }
    return candidates;
  };

  let fine = readsAgree();
  for (;;) {
    if (tries > MAX_TRIES) return { violation: undefined, decided: false, ...NO_PLACES };
    if (!fine) {
      if (!goBack()) return { violation: deepest.reason(), decided: true, ...NO_PLACES };
      fine = readsAgree();
      continue;
    }
    if (revision === last) {
      return {
        violation: undefined,
        decided: true,
        placed: new Map(used.map((op, i) => [op, choices[i].revision])),
        leaseEnds,
      };
    }
    revision++;
    const write = writes.get(revision);
    if (write !== undefined) {
      const { answer, next } = state.apply(write.request);
      const wrong = difference(answer, (write.outcome as { answer: Answer }).answer);
      if (wrong !== undefined || next === state) {
        const at = revision;
        fail(
          () =>
            `HIST-3: at revision ${at} ${wrong ?? "the model writes nothing"}:\n  ${words(write)}${around(at)}`,
        );
        fine = false;
        continue;
      }
      state = next;
      fine = readsAgree();
      continue;
    }
    const own = hint(revision);
    if (own?.kind === "revoke") {
      leaseEnds.set(own.lease, revision);
      const { next } = state.apply(own);
      const at = revision;
      if (next === state)
        fail(
          () =>
            `HIST-2: revision ${at} is the end of the lease ${own.lease}, which has no keys${around(at)}`,
        );
      else state = next;
      fine = next.revision === at && readsAgree();
      continue;
    }
    const at = revision;
    const candidates = candidatesAt(at, state, used);
    if (candidates.length === 0)
      fail(() => `HIST-2: revision ${at} is nobody's write${around(at)}`);
    choices.push({ revision, state, candidates, next: 0, usedCount: used.length });
    fine = false;
  }
}

/** The values that a request puts, if it comes to it, each with its key. */
function putsOf(request: ModelRequest): string[] {
  return opsOf(request).flatMap((op) => (op.kind === "put" ? [`${op.key} ${op.value}`] : []));
}

/** A name for each state: equal names, equal states. */
function stateNamer(): (state: ModelState) => string {
  const numbers = new Map<string, number>();
  const numberOf = (value: string): number => {
    let number = numbers.get(value);
    if (number === undefined) numbers.set(value, (number = numbers.size));
    return number;
  };
  return (state) => {
    const keys = [...state.keys].sort(([a], [b]) => (a < b ? -1 : 1));
    return keys
      .map(
        ([key, { value, create, mod, version, lease }]) =>
          `${key}:${numberOf(value)}:${create}:${mod}:${version}:${lease}`,
      )
      .join(";");
  };
}
