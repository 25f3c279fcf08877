/**
 * Assigns every revision its write: known writes stand where their answers say, those of unknown
 * outcome are searched for.
 */
import { type Answer, type ModelRequest, ModelState } from "../base/model.ts";
import { difference } from "../base/model-difference.ts";
import { type Operation, words } from "../base/operation.ts";
import { ShownValues } from "./shown-values.ts";

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
  /** Requests applied to the model, as a measure of the work. */
  readonly steps: number;
  /**
   * The revisions found for writes of unknown outcome, if all is well; those that are not in it had
   * no effect.
   */
  readonly placed: ReadonlyMap<Operation, number>;
  /** The revisions at which leases ended, if all is well. */
  readonly leaseEnds: ReadonlyMap<string, number>;
}

const NO_PLACES: Pick<Places, "placed" | "leaseEnds"> = { placed: new Map(), leaseEnds: new Map() };

/**
 * HIST-2 and HIST-3: assigns every revision its write, and looks at every answer.
 * @param maxSteps after so many requests applied to the model it gives up: undecided
 */
export function place(parts: Parts, hint: Hint, mayBe: Fits, maxSteps: number): Places {
  return new PlaceSearch(parts, hint, mayBe).run(maxSteps);
}

/**
 * Walks from revision to revision. Where a write of unknown outcome has to stand, it tries one
 * candidate after the other, and comes back for the next one if what follows does not fit.
 */
class PlaceSearch {
  readonly #parts: Parts;
  readonly #hint: Hint;
  readonly #mayBe: Fits;
  readonly #firstSeen: readonly number[];
  readonly #shown: ShownValues;
  /** Writes of unknown outcome that have a place now, in the order of their revisions. */
  readonly #used: Operation[] = [];
  readonly #leaseEnds = new Map<string, number>();
  readonly #choices: Choice[] = [];
  /** States that were tried, with the unknown writes used up by then. */
  readonly #tried = new Set<string>();
  readonly #nameOf = stateNamer();
  #tries = 0;
  #steps = 0;
  #deepest = { revision: 0, reason: () => "" };
  #state = new ModelState();
  #revision = 1;

  constructor(parts: Parts, hint: Hint, mayBe: Fits) {
    this.#parts = parts;
    this.#hint = hint;
    this.#mayBe = mayBe;
    this.#firstSeen = firstSeenOf(parts);
    const { writes, reads, unknown } = parts;
    const known = [...writes.values()];
    this.#shown = new ShownValues(
      [...known, ...unknown],
      [...[...reads.values()].flat(), ...known],
    );
  }

  run(maxSteps: number): Places {
    let fits = this.#readsAgree();
    for (;;) {
      if (this.#tries > MAX_TRIES || this.#steps > maxSteps)
        return { violation: undefined, decided: false, steps: this.#steps, ...NO_PLACES };
      if (!fits) {
        if (!this.#goBack()) {
          const violation = this.#deepest.reason();
          return { violation, decided: true, steps: this.#steps, ...NO_PLACES };
        }
        fits = this.#readsAgree();
      } else if (this.#revision === this.#parts.last) return this.#found();
      else fits = this.#advance();
    }
  }

  #found(): Places {
    return {
      violation: undefined,
      decided: true,
      steps: this.#steps,
      placed: new Map(this.#used.map((op, i) => [op, this.#choices[i].revision])),
      leaseEnds: this.#leaseEnds,
    };
  }

  /** Applies a request to a state of the model. */
  #apply(state: ModelState, request: ModelRequest): ReturnType<ModelState["apply"]> {
    this.#steps++;
    return state.apply(request);
  }

  /** Goes on to the next revision. False if what is known of it does not fit. */
  #advance(): boolean {
    const at = ++this.#revision;
    const write = this.#parts.writes.get(at);
    if (write !== undefined) return this.#applyKnown(write);
    const own = this.#hint(at);
    if (own?.kind === "revoke") return this.#endLease(own);
    const candidates = this.#candidatesAt(at);
    if (candidates.length === 0)
      this.#fail(() => `HIST-2: revision ${at} is no client's write${this.#around(at)}`);
    this.#choices.push({
      revision: at,
      state: this.#state,
      candidates,
      next: 0,
      usedCount: this.#used.length,
    });
    // The first candidate is taken up as those after it are.
    return false;
  }

  #applyKnown(write: Operation): boolean {
    const at = this.#revision;
    const { answer, next } = this.#apply(this.#state, write.request);
    const wrong = difference(answer, answerOf(write));
    if (wrong !== undefined || next === this.#state) {
      this.#fail(
        () =>
          `HIST-3: at revision ${at} ${wrong ?? "the model writes nothing"}:\n  ${words(write)}${this.#around(at)}`,
      );
      return false;
    }
    this.#state = next;
    return this.#readsAgree();
  }

  #endLease(own: Extract<ModelRequest, { kind: "revoke" }>): boolean {
    const at = this.#revision;
    this.#leaseEnds.set(own.lease, at);
    const { next } = this.#apply(this.#state, own);
    if (next === this.#state)
      this.#fail(
        () =>
          `HIST-2: revision ${at} is the end of the lease ${own.lease}, which has no keys${this.#around(at)}`,
      );
    else this.#state = next;
    return next.revision === at && this.#readsAgree();
  }

  #readsAgree(): boolean {
    const at = this.#revision;
    for (const op of this.#parts.reads.get(at) ?? []) {
      const answer = answerOf(op);
      const expected = this.#apply(this.#state, op.request).answer;
      const wrong = difference(
        op.atRevision > 0 ? { ...expected, revision: answer.revision } : expected,
        answer,
      );
      if (wrong === undefined) continue;
      this.#fail(() => `HIST-3: at revision ${at} ${wrong}:\n  ${words(op)}${this.#around(at)}`);
      return false;
    }
    return true;
  }

  /** Unknown writes that may stand at a revision, the one of the log first. */
  #candidatesAt(at: number): Candidate[] {
    const before = this.#state;
    const { unknown, floors } = this.#parts;
    const isTaken = new Set(this.#used);
    const likely = JSON.stringify(this.#hint(at));
    const candidates: Candidate[] = [];
    for (const op of unknown) {
      const { request } = op;
      if (isTaken.has(op) || floors.get(op)! >= at || op.calledAt >= this.#firstSeen[at]) continue;
      if (request.kind === "put" && !this.#shown.mayBeAt(request.key, request.value, at)) continue;
      const { next } = this.#apply(before, request);
      if (next === before || !this.#mayBe(at, before, next) || !this.#shown.fits(at, next))
        continue;
      if (likely !== undefined && JSON.stringify(request) === likely)
        candidates.unshift({ op, next });
      else candidates.push({ op, next });
    }
    return candidates;
  }

  /** Takes up the last choice that has something left; false if there is none. */
  #goBack(): boolean {
    const used = this.#used;
    for (let choice = this.#choices.at(-1); choice !== undefined; choice = this.#choices.at(-1)) {
      used.length = choice.usedCount;
      while (choice.next < choice.candidates.length) {
        const { op, next } = choice.candidates[choice.next++];
        this.#tries++;
        used.push(op);
        const key = `${choice.revision} ${used.map((one) => one.calledAt).sort((a, b) => a - b)} ${this.#nameOf(next)}`;
        if (this.#tried.has(key)) {
          used.pop();
          continue;
        }
        this.#tried.add(key);
        this.#revision = choice.revision;
        this.#state = next;
        return true;
      }
      this.#choices.pop();
    }
    return false;
  }

  /** Remembers the reason at the highest revision that was reached. */
  #fail(reason: () => string): void {
    if (this.#revision >= this.#deepest.revision)
      this.#deepest = { revision: this.#revision, reason };
  }

  /** The writes around a revision, in words. */
  #around(at: number): string {
    const { writes, last } = this.#parts;
    const lines: string[] = [];
    for (let r = Math.max(2, at - 3); r <= Math.min(last, at + 2); r++) {
      const write = writes.get(r);
      lines.push(`\n  revision ${r}: ${write === undefined ? "of unknown outcome" : words(write)}`);
    }
    return lines.join("");
  }
}

function answerOf({ outcome }: Operation): Answer {
  return (outcome as { answer: Answer }).answer;
}

/**
 * By revision, when a client first saw it or a later one: an unknown write at a revision must have
 * been called before.
 */
function firstSeenOf({ writes, reads, last }: Parts): number[] {
  const firstSeen = new Array<number>(last + 2).fill(Number.POSITIVE_INFINITY);
  const see = (revision: number, op: Operation) => {
    firstSeen[revision] = Math.min(firstSeen[revision], op.returnedAt!);
  };
  for (const [revision, op] of writes) see(revision, op);
  for (const ops of reads.values()) for (const op of ops) see(answerOf(op).revision, op);
  for (let revision = last - 1; revision >= 0; revision--)
    firstSeen[revision] = Math.min(firstSeen[revision], firstSeen[revision + 1]);
  return firstSeen;
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
