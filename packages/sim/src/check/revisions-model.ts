/**
 * etcd's keys with all their revisions, as an object of the search: every write counts the one
 * revision up, so nothing is apart.
 */
import { ModelState } from "../base/model.ts";
import { difference } from "../base/model-difference.ts";
import { changesKeys, type Operation } from "../base/operation.ts";
import type { Relation, SearchModel, SearchOp } from "./search.ts";

/** A whole history as a search problem. */
export class RevisionsModel implements SearchModel {
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
