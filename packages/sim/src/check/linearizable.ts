/**
 * The general judge: is a history linearizable, whatever the answers say of revisions? It searches
 * for an order, so it is slower than the judge by revision, and independent of it: the two are run
 * against each other, and against a naive model.
 *
 * Serializable reads and reads at an old revision are left out: they need not show the newest
 * state. What was refused had no effect and is left out too. An operation of unknown outcome may
 * take effect at any time after its call, or never.
 */
import { ModelState } from "../base/model.ts";
import { difference } from "../base/model-difference.ts";
import { changesKeys, type Operation } from "../base/operation.ts";
import { opsOf, partsOf } from "./parts.ts";
import { isWitness, type Relation, type SearchModel, type SearchOp, search } from "./search.ts";
import { ValuesModel } from "./values-model.ts";

/** Configurations entered in one part before the search gives up. */
export const MAX_SEARCH_STATES = 1_000_000;

/** Configurations entered to see how far an order goes that has no end. */
const MAX_EXPLAIN_STATES = 20_000;

/** How to judge. */
export interface LinearizabilityOptions {
  /**
   * ignored (the default): only keys and values count, and keys that nothing joins are judged
   * apart. compared: every answer whole.
   */
  readonly revisions?: "ignored" | "compared";
  /**
   * Configurations entered in one part before the search gives up; MAX_SEARCH_STATES if not given.
   */
  readonly maxStates?: number | undefined;
  /**
   * Revisions of writes of unknown outcome, as another judge found them: with those of the answers
   * an order to begin with.
   */
  readonly places?: ReadonlyMap<Operation, number> | undefined;
  /** As places, for the ends of leases. */
  readonly leaseEnds?: ReadonlyMap<string, number> | undefined;
}

/** What the judge found. */
export interface Linearizability {
  /**
   * undecided: no violation was found within the bound, and not every order was tried. It is no
   * pass.
   */
  readonly result: "linearizable" | "not-linearizable" | "undecided";
  /**
   * The part of the history that failed, or else was given up, by the order of calls; empty if all
   * is well.
   */
  readonly part: readonly Operation[];
  /** The longest order found for that part, as far as it goes. */
  readonly prefix: readonly Operation[];
  /** Operations of which one had to come next, and none could. */
  readonly stuck: readonly Operation[];
  readonly parts: number;
  /** Operations that were judged. */
  readonly judged: number;
  /** Configurations entered, over all parts. */
  readonly states: number;
}

function counts({ request, serializable, atRevision, outcome }: Operation): boolean {
  if (outcome?.kind === "refused") return false;
  return outcome?.kind === "answered"
    ? !serializable && atRevision === 0
    : request.kind !== "range";
}

/**
 * The order that revisions show, as numbers of operations; those of unknown outcome that have none
 * are not in it.
 */
function orderOf(
  operations: readonly Operation[],
  places: ReadonlyMap<Operation, number>,
): number[] {
  const revisions = operations.map((op) =>
    op.outcome?.kind === "answered" ? op.outcome.answer.revision : places.get(op),
  );
  // The write of a revision comes before those who only saw it.
  const reads = operations.map(
    ({ request, outcome }) => outcome?.kind === "answered" && !changesKeys(request, outcome.answer),
  );
  return [...operations.keys()]
    .filter((i) => revisions[i] !== undefined)
    .sort((a, b) => revisions[a]! - revisions[b]! || Number(reads[a]) - Number(reads[b]) || a - b);
}

/**
 * The ends of leases: each at any time after a request named it, or never. No client need have
 * asked for them.
 */
function endsOf(operations: readonly Operation[]): Operation[] {
  const ends = new Map<string, Operation>();
  for (const { request, calledAt } of operations) {
    for (const op of opsOf(request)) {
      if (op.kind !== "put" || op.lease === undefined || ends.has(op.lease)) continue;
      const end = {
        client: `lease ${op.lease}`,
        request: { kind: "revoke", lease: op.lease },
        serializable: false,
        atRevision: 0,
      } as const;
      ends.set(op.lease, { ...end, calledAt, returnedAt: undefined, outcome: undefined });
    }
  }
  return [...ends.values()];
}

/** Judges a history that has ended; operations in any order. */
export function checkLinearizable(
  operations: readonly Operation[],
  options: LinearizabilityOptions = {},
): Linearizability {
  const { revisions = "ignored", maxStates = MAX_SEARCH_STATES, leaseEnds } = options;
  let { places } = options;
  const counted = operations.filter(counts).sort((a, b) => a.calledAt - b.calledAt);
  const ends = endsOf(counted);
  if (places !== undefined && ends.length > 0) {
    const known = ends.map(
      (end) => [end, leaseEnds?.get((end.request as { lease: string }).lease)] as const,
    );
    places = new Map([
      ...places,
      ...known.filter((one): one is [Operation, number] => one[1] !== undefined),
    ]);
  }
  const judged =
    ends.length === 0 ? counted : [...counted, ...ends].sort((a, b) => a.calledAt - b.calledAt);
  const parts = revisions === "compared" ? [{ operations: judged, keys: [] }] : partsOf(judged);
  let states = 0;
  let undecided: Linearizability | undefined;
  for (const part of parts) {
    const modelOf = () =>
      revisions === "compared"
        ? new RevisionsModel(part.operations)
        : new ValuesModel(part.operations, part.keys, places);
    const model = modelOf();
    if (places !== undefined && isWitness(orderOf(part.operations, places), model.ops, model))
      continue;
    const found = search(model.ops, model, { maxStates, prunes: true });
    states += found.states;
    if (found.result === "linearizable") continue;
    const again = modelOf();
    const explained = search(again.ops, again, {
      maxStates: Math.min(MAX_EXPLAIN_STATES, maxStates),
      prunes: false,
    });
    states += explained.states;
    const { prefix, stuck } = explained.prefix.length >= found.prefix.length ? explained : found;
    const verdict: Linearizability = {
      result: found.result,
      part: part.operations,
      prefix: prefix.map((i) => part.operations[i]),
      stuck: stuck.map((i) => part.operations[i]),
      parts: parts.length,
      judged: counted.length,
      states,
    };
    if (found.result === "not-linearizable") return verdict;
    undecided ??= verdict;
  }
  if (undecided !== undefined) return { ...undecided, states };
  return {
    result: "linearizable",
    part: [],
    prefix: [],
    stuck: [],
    parts: parts.length,
    judged: counted.length,
    states,
  };
}

/**
 * etcd's keys with all their revisions, as an object of the search: every write counts the one
 * revision up, so nothing is apart.
 *
 * A whole history as a search problem.
 */
class RevisionsModel implements SearchModel {
  readonly initial = 0;
  readonly ops: readonly SearchOp[];
  readonly #operations: readonly Operation[];
  readonly #states: ModelState[] = [];
  readonly #numbers = new Map<string, number>();

  /** @param operations in the order of their calls. */
  constructor(operations: readonly Operation[]) {
    this.#operations = operations;
    this.#number(new ModelState());
    this.ops = operations.map(({ calledAt, returnedAt, request, outcome }) => {
      const isAnswered = outcome?.kind === "answered" && returnedAt !== undefined;
      return {
        calledAt,
        returnedAt: isAnswered ? returnedAt : Number.POSITIVE_INFINITY,
        isPure: isAnswered && !changesKeys(request, outcome.answer),
        duplicateOf: -1,
        hint: isAnswered ? outcome.answer.revision : Number.POSITIVE_INFINITY,
      };
    });
  }

  relation(): Relation {
    return "depends";
  }

  placed(): void {}

  takenBack(): void {}

  isHopeless(): boolean {
    return false;
  }

  step(state: number, op: number): readonly number[] {
    const before = this.#states[state];
    const { request, outcome } = this.#operations[op];
    const isAnswered = outcome?.kind === "answered";
    // A write says which revision it made, and a read which one it saw.
    if (
      isAnswered &&
      (outcome.answer.revision < before.revision || outcome.answer.revision > before.revision + 1)
    )
      return [];
    const { answer, next } = before.apply(request);
    if (isAnswered && difference(answer, outcome.answer) !== undefined) return [];
    return [next === before ? state : this.#number(next)];
  }

  #number(state: ModelState): number {
    const text = JSON.stringify([
      state.revision,
      [...state.keys].sort(([a], [b]) => (a < b ? -1 : 1)),
    ]);
    let number = this.#numbers.get(text);
    if (number === undefined) {
      this.#numbers.set(text, (number = this.#states.length));
      this.#states.push(state);
    }
    return number;
  }
}
