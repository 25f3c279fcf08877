/**
 * The search for an order, after Wing and Gong ("Testing and verifying concurrent objects") with
 * Lowe's memory of configurations ("Testing for linearizability"): at each step some operation
 * comes next that was called before any other that is still out returned; where none fits, the
 * search goes back. A configuration, the operations placed and the state they made, is not entered
 * twice.
 *
 * Three things keep it short, and change no verdict:
 *
 *   - an operation that changes nothing and whose answer is right is placed at once: later it would
 *     fit no better;
 *   - what is tried first may be hinted at (by the revisions in the answers), and an operation of
 *     unknown outcome that nothing hints at is tried last, for most of them are not needed;
 *   - operations of unknown outcome come in chains, each before one that returned: each of a chain
 *     has another after it, there or at the end, that depends on it. Any that has none could as
 *     well come after that end, and at last be left out.
 */

/** One operation as the search sees it. */
export interface SearchOp {
  readonly calledAt: number;
  /** Infinity if its outcome is unknown: then it need not be placed. */
  readonly returnedAt: number;
  /** It changes nothing, and its answer says so wherever it is placed. */
  readonly isPure: boolean;
  /**
   * Another of unknown outcome that does the same and was called before: that one is placed first.
   * -1 if there is none.
   */
  readonly duplicateOf: number;
  /**
   * Where it is likely to stand among the others; Infinity if nothing is known. It only says what
   * is tried first.
   */
  readonly hint: number;
}

/**
 * apart: it makes no difference which of the two comes first. hides: after it, no result shows
 * whether the other took effect. depends: neither is known.
 */
export type Relation = "apart" | "hides" | "depends";

/** An object, and what operations do to it. States are numbers: equal numbers, equal states. */
export interface SearchModel {
  readonly initial: number;
  /**
   * The states after operation `op` at `state` if it returns the answer that was seen; none if it
   * cannot.
   */
  step(state: number, op: number): readonly number[];
  /** What `op` has to do with `unknown`, an operation of unknown outcome placed before it. */
  relation(op: number, unknown: number): Relation;
  /**
   * An operation is placed, or is taken back again: for a model that keeps account of what is still
   * out.
   */
  placed(op: number): void;
  takenBack(op: number): void;
  /**
   * True if what is still out can surely not be placed after a step from one state to another.
   * False where that is not known.
   */
  isHopeless(before: number, after: number): boolean;
}

/** What a search came to. Operations are given by their number. */
export interface SearchResult {
  readonly result: "linearizable" | "not-linearizable" | "undecided";
  /** The longest order found, with the operations that could not come next. */
  readonly prefix: readonly number[];
  readonly stuck: readonly number[];
  readonly states: number;
}

interface Frame {
  readonly state: number;
  readonly choices: readonly { readonly op: number; readonly state: number }[];
  next: number;
  /**
   * Operations of unknown outcome placed since one that returned, on which none of those after them
   * depends. Ascending.
   */
  readonly pending: readonly number[];
}

/** States followed at a time where an order leaves open what came of an operation. */
const MAX_WITNESS_STATES = 4096;

const NONE: readonly number[] = [];

/** The operations that are still out, in the order of their calls. */
class Remaining {
  readonly #ops: readonly SearchOp[];
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #done: Uint8Array;
  /** Operations that returned, by call; and how many of them, from the first, are all done. */
  readonly #required: readonly number[];
  readonly #place: Int32Array;
  #requiredHead = 0;
  #requiredTop = -1;
  readonly #optionalDone: number[] = [];
  requiredLeft: number;

  /** @param ops in the order of their calls. */
  constructor(ops: readonly SearchOp[]) {
    const n = ops.length;
    this.#ops = ops;
    this.#next = Int32Array.from({ length: n + 1 }, (_, i) => i + 1);
    this.#next[n] = 0;
    this.#previous = Int32Array.from({ length: n + 1 }, (_, i) => i - 1);
    this.#previous[0] = n;
    this.#done = new Uint8Array(n);
    this.#required = ops.flatMap((op, i) => (op.returnedAt < Number.POSITIVE_INFINITY ? [i] : []));
    this.#place = new Int32Array(n).fill(-1);
    this.#required.forEach((op, i) => {
      this.#place[op] = i;
    });
    this.requiredLeft = this.#required.length;
  }

  /** Those that may come next: called before anything that is out returned. */
  candidates(): number[] {
    const found: number[] = [];
    const end = this.#ops.length;
    let limit = Number.POSITIVE_INFINITY;
    for (let i = this.#next[end]; i !== end; i = this.#next[i]) {
      const op = this.#ops[i];
      if (op.calledAt > limit) break;
      found.push(i);
      if (op.returnedAt < limit) limit = op.returnedAt;
    }
    return found;
  }

  isDone(op: number): boolean {
    return this.#done[op] === 1;
  }

  take(op: number): void {
    this.#next[this.#previous[op]] = this.#next[op];
    this.#previous[this.#next[op]] = this.#previous[op];
    this.#done[op] = 1;
    const place = this.#place[op];
    if (place < 0) {
      this.#optionalDone.push(op);
      return;
    }
    this.requiredLeft--;
    if (place > this.#requiredTop) this.#requiredTop = place;
    while (
      this.#requiredHead < this.#required.length &&
      this.#done[this.#required[this.#requiredHead]] === 1
    )
      this.#requiredHead++;
  }

  /** Takes the last `take` back that was not taken back. */
  putBack(op: number): void {
    this.#next[this.#previous[op]] = op;
    this.#previous[this.#next[op]] = op;
    this.#done[op] = 0;
    const place = this.#place[op];
    if (place < 0) {
      this.#optionalDone.pop();
      return;
    }
    this.requiredLeft++;
    if (place < this.#requiredHead) this.#requiredHead = place;
    while (this.#requiredTop >= 0 && this.#done[this.#required[this.#requiredTop]] === 0)
      this.#requiredTop--;
  }

  /** Which operations are placed, as text: equal for equal sets. */
  key(): string {
    let key = `${this.#requiredHead}`;
    for (let i = this.#requiredHead; i <= this.#requiredTop; i++)
      if (this.#done[this.#required[i]] === 1) key += `,${i}`;
    return `${key};${[...this.#optionalDone].sort((a, b) => a - b).join()}`;
  }
}

/** Bounds and ways of a search. */
export interface SearchOptions {
  /** Configurations entered before the search gives up with "undecided". */
  readonly maxStates: number;
  /**
   * Asks the model whether a step is hopeless. Without, the search goes as far as it can, and says
   * better where it got stuck.
   */
  readonly prunes: boolean;
}

/** By their hints, then by their returns: what is known to come early, and what has to. */
function sooner(a: SearchOp, b: SearchOp): number {
  if (a.hint !== b.hint) return a.hint - b.hint;
  return a.returnedAt === b.returnedAt ? 0 : a.returnedAt - b.returnedAt;
}

/**
 * Looks for an order of `ops` (in the order of their calls) that the model allows and that agrees
 * with real time.
 */
export function search(
  ops: readonly SearchOp[],
  model: SearchModel,
  { maxStates, prunes }: SearchOptions,
): SearchResult {
  const remaining = new Remaining(ops);
  const seen = new Set<string>();
  const order: number[] = [];
  const frames: Frame[] = [];
  let states = 0;
  let best: { placed: number; prefix: number[]; stuck: number[] } = {
    placed: -1,
    prefix: [],
    stuck: [],
  };

  const enter = (state: number, pending: readonly number[]) => {
    const candidates = remaining.candidates();
    let choices: { op: number; state: number }[] = [];
    for (const op of candidates) {
      const { returnedAt, isPure, duplicateOf } = ops[op];
      const isOptional = returnedAt === Number.POSITIVE_INFINITY;
      if (duplicateOf >= 0 && !remaining.isDone(duplicateOf)) continue;
      if (pending.length > 0 && !follows(op, isOptional, pending)) continue;
      const after = model.step(state, op);
      if (isPure && after.length > 0) {
        choices = [{ op, state: after[0] }];
        break;
      }
      if (isOptional && after.length > 0 && !isAwaited(op, candidates)) continue;
      // Where it changes nothing, one that need not be placed is of no use.
      for (const one of after) if (!isOptional || one !== state) choices.push({ op, state: one });
    }
    if (choices.length > 1) choices.sort((a, b) => sooner(ops[a.op], ops[b.op]));
    if (choices.length === 0 && order.length > best.placed) {
      const stuck = candidates.filter((op) => ops[op].returnedAt < Number.POSITIVE_INFINITY);
      best = { placed: order.length, prefix: [...order], stuck };
    }
    frames.push({ state, choices, next: 0, pending });
  };
  /**
   * Whether an operation may come next: it hides nothing that no operation looked at, and one that
   * returned depends on all that waits.
   */
  const follows = (op: number, isOptional: boolean, pending: readonly number[]): boolean =>
    pending.every((one) => {
      const relation = model.relation(op, one);
      return relation === "depends" || (isOptional && relation === "apart");
    });
  /**
   * Whether any operation could come later, before one that returned or as that one, which depends
   * on one of unknown outcome.
   */
  const isAwaited = (op: number, candidates: readonly number[]): boolean =>
    candidates.some((other) => other !== op && model.relation(other, op) === "depends");
  const pendingAfter = (op: number, pending: readonly number[]): readonly number[] => {
    if (ops[op].returnedAt < Number.POSITIVE_INFINITY) return NONE;
    return [...pending.filter((one) => model.relation(op, one) !== "depends"), op].sort(
      (a, b) => a - b,
    );
  };

  const takeBack = (op: number) => {
    remaining.putBack(op);
    model.takenBack(op);
  };

  if (remaining.requiredLeft > 0) enter(model.initial, NONE);
  while (remaining.requiredLeft > 0) {
    const frame = frames[frames.length - 1];
    if (frame === undefined)
      return { result: "not-linearizable", prefix: best.prefix, stuck: best.stuck, states };
    if (frame.next === frame.choices.length) {
      frames.pop();
      const op = order.pop();
      if (op !== undefined) takeBack(op);
      continue;
    }
    const { op, state } = frame.choices[frame.next++];
    remaining.take(op);
    model.placed(op);
    if (++states > maxStates)
      return { result: "undecided", prefix: best.prefix, stuck: best.stuck, states };
    if (prunes && state !== frame.state && model.isHopeless(frame.state, state)) {
      takeBack(op);
      continue;
    }
    const pending = pendingAfter(op, frame.pending);
    // Where there was no choice, the place that is next has been entered once for each time this
    // one has.
    if (frame.choices.length > 1) {
      const key = `${state};${pending.join()};${remaining.key()}`;
      if (seen.has(key)) {
        takeBack(op);
        continue;
      }
      seen.add(key);
    }
    order.push(op);
    enter(state, pending);
  }
  return { result: "linearizable", prefix: order, stuck: [], states };
}

/**
 * Whether an order that is known from elsewhere is one that the model allows and that agrees with
 * real time.
 */
export function isWitness(
  order: readonly number[],
  ops: readonly SearchOp[],
  model: SearchModel,
): boolean {
  let states = new Set([model.initial]);
  let called = Number.NEGATIVE_INFINITY;
  for (const op of order) {
    called = Math.max(called, ops[op].calledAt);
    if (ops[op].returnedAt < called) return false;
    const after = new Set<number>();
    for (const state of states) for (const one of model.step(state, op)) after.add(one);
    if (after.size === 0 || after.size > MAX_WITNESS_STATES) return false;
    states = after;
  }
  return true;
}
