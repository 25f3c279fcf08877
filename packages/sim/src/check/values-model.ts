/**
 * What etcd's keys do, with revisions left out: a key holds a value or nothing. It judges histories
 * in which revisions are not to be trusted, or not there, and is a second opinion on those in which
 * they are.
 *
 * A comparison of a revision or version is known where a key is absent (they are 0 then) and where
 * 0 decides it; elsewhere either branch may be taken, which for an operation that was answered is
 * the one that it says.
 */
import { defined } from "@quorate/proto";
import type { ModelCompare, ModelOp, OpAnswer } from "../base/model.ts";
import { changesKeys, type Operation } from "../base/operation.ts";
import { type LeaseKeys, leaseKeysOf, opsOf } from "./parts.ts";
import type { Relation, SearchModel, SearchOp } from "./search.ts";

/** Of a key that holds nothing. */
const ABSENT = 0;
/** Of a value that no answer and no comparison knows: all such are the same. */
const UNSEEN = 1;
type Step =
  | { readonly kind: "put"; readonly key: number; readonly value: number }
  | {
      readonly kind: "delete";
      readonly keys: readonly number[];
      readonly deleted: number | undefined;
    }
  | {
      readonly kind: "range";
      readonly keys: readonly number[];
      readonly values: readonly number[] | undefined;
    }
  /** The end of a lease. */
  | { readonly kind: "end"; readonly lease: string; readonly keys: readonly number[] }
  /** An answer that no state returns. */
  | { readonly kind: "never" };

interface Compare {
  readonly key: number;
  readonly of: ModelCompare;
}

interface Plan {
  readonly compares: readonly Compare[];
  /**
   * The branch taken, or both where that is not known; without comparisons the first is all there
   * is.
   */
  readonly branches: readonly [readonly Step[] | undefined, readonly Step[] | undefined];
  /**
   * The one key of a put or delete of unknown outcome: it is not needed where no operation looks at
   * the key afterwards.
   */
  readonly blindKey: number | undefined;
}

/** What an operation has to do with keys, for a search. */
interface Reach {
  readonly looks: ReadonlySet<number>;
  readonly writes: ReadonlySet<number>;
  /** What keys have to hold when it comes, by its answer; and what it may write: by #place. */
  readonly needs: readonly number[];
  readonly provides: readonly number[];
}

function endOf({ outcome, returnedAt }: Operation): number {
  return outcome?.kind === "answered" && returnedAt !== undefined
    ? returnedAt
    : Number.POSITIVE_INFINITY;
}

function answersOf({ outcome }: Operation): readonly OpAnswer[] | undefined {
  return outcome?.kind === "answered" ? outcome.answer.answers : undefined;
}

/** One part of a history as a search problem. */
export class ValuesModel implements SearchModel {
  readonly initial = 0;
  readonly ops: readonly SearchOp[];
  readonly #keys: readonly string[];
  readonly #keyNumbers: ReadonlyMap<string, number>;
  readonly #leases: LeaseKeys;
  readonly #values = new Map<string, number>();
  /** By number of a value: its text, and the lease that it hangs on. */
  readonly #texts: { readonly text: string; readonly lease: string | undefined }[] = [
    { text: "", lease: undefined },
    { text: "", lease: undefined },
  ];
  readonly #seen = new Set<string>();
  /** Where reads say that a value was written, by key and value. */
  readonly #writtenAt = new Map<string, number>();
  readonly #plans: readonly Plan[];
  /**
   * For a key that holds a value: operations still out that need that, and that may bring it about.
   * By #place.
   */
  readonly #needed = new Map<number, number>();
  readonly #given = new Map<number, number>();
  /** A known order is followed without all that. */
  #isCounting = false;
  readonly #reaches: (Reach | undefined)[] = [];
  readonly #answered: readonly boolean[];
  readonly #states: (readonly number[])[] = [];
  readonly #numbers = new Map<string, number>();

  /**
   * @param operations in the order of their calls.
   * @param keys all that they may touch, ascending.
   * @param places revisions of operations that their answers do not show, if another judge knows of
   * some. Hints, no more.
   */
  constructor(
    operations: readonly Operation[],
    keys: readonly string[],
    places: ReadonlyMap<Operation, number> = new Map(),
  ) {
    this.#keys = keys;
    this.#leases = leaseKeysOf(operations);
    this.#keyNumbers = new Map(keys.map((key, i) => [key, i]));
    this.#number(keys.map(() => ABSENT));
    for (const { request, outcome } of operations) {
      if (request.kind === "txn")
        for (const { target, operand } of request.compares)
          if (target === "value") this.#seen.add(`${operand}`);
      if (outcome?.kind !== "answered") continue;
      for (const one of outcome.answer.answers) {
        if (one.kind !== "range") continue;
        for (const { key, value, mod } of one.kvs) {
          this.#seen.add(value);
          if (mod > 0) this.#writtenAt.set(`${key} ${value}`, mod);
        }
      }
    }
    this.#plans = operations.map((op) => this.#plan(op));
    this.#answered = operations.map(({ outcome }) => outcome?.kind === "answered");
    const duplicates = new Map<string, number>();
    this.ops = operations.map((op, i) => {
      const returnedAt = endOf(op);
      let duplicateOf = -1;
      if (returnedAt === Number.POSITIVE_INFINITY) {
        const text = JSON.stringify([this.#plans[i].compares, this.#plans[i].branches]);
        duplicateOf = duplicates.get(text) ?? -1;
        duplicates.set(text, i);
      }
      const isPure = op.outcome?.kind === "answered" && !changesKeys(op.request, op.outcome.answer);
      return {
        calledAt: op.calledAt,
        returnedAt,
        isPure,
        duplicateOf,
        hint: places.get(op) ?? this.#hint(op),
      };
    });
  }

  relation(op: number, unknown: number): Relation {
    const { looks, writes } = this.#reach(op);
    const { blindKey } = this.#plans[unknown];
    if (blindKey !== undefined)
      return looks.has(blindKey) ? "depends" : writes.has(blindKey) ? "hides" : "apart";
    const before = this.#reach(unknown);
    for (const key of before.writes) if (looks.has(key) || writes.has(key)) return "depends";
    for (const key of before.looks) if (writes.has(key)) return "depends";
    return "apart";
  }

  placed(op: number): void {
    if (!this.#isCounting) for (let i = 0; i < this.#plans.length; i++) this.#count(i, 1);
    this.#isCounting = true;
    this.#count(op, -1);
  }

  takenBack(op: number): void {
    this.#count(op, 1);
  }

  /** A value that is needed yet was written over, and no operation is left to bring it back. */
  isHopeless(before: number, after: number): boolean {
    const now = this.#states[after];
    return this.#states[before].some((value, key) => {
      if (now[key] === value || (this.#needed.get(this.#place(key, value)) ?? 0) === 0)
        return false;
      return (this.#given.get(this.#place(key, value)) ?? 0) === 0;
    });
  }

  #count(op: number, by: number): void {
    const { needs, provides } = this.#reach(op);
    for (const place of needs) this.#needed.set(place, (this.#needed.get(place) ?? 0) + by);
    for (const place of provides) this.#given.set(place, (this.#given.get(place) ?? 0) + by);
  }

  /** A number for a key with a value. */
  #place(key: number, value: number): number {
    return value * this.#keys.length + key;
  }

  step(state: number, op: number): readonly number[] {
    const { compares, branches } = this.#plans[op];
    const held = this.#states[state];
    const holds = compares.length === 0 ? true : this.#holds(compares, held);
    const found: number[] = [];
    for (const [i, branch] of branches.entries()) {
      if (branch === undefined || (holds !== undefined && holds !== (i === 0))) continue;
      const after = this.#run(branch, held);
      if (after !== undefined) found.push(after === held ? state : this.#number(after));
    }
    return found;
  }

  /** The revision that an operation made or saw, as far as answers show. */
  #hint({ request, outcome }: Operation): number {
    if (outcome?.kind === "answered")
      return outcome.answer.revision > 0 ? outcome.answer.revision : Number.POSITIVE_INFINITY;
    const hints = opsOf(request).flatMap((op) =>
      op.kind === "put" ? (this.#writtenAt.get(`${op.key} ${op.value}`) ?? []) : [],
    );
    return Math.min(...hints);
  }

  /** The place of a key among all keys. */
  #numberOf(key: string): number {
    return defined(this.#keyNumbers.get(key), "the key");
  }

  #number(held: readonly number[]): number {
    const text = held.join();
    let number = this.#numbers.get(text);
    if (number === undefined) {
      this.#numbers.set(text, (number = this.#states.length));
      this.#states.push(held);
    }
    return number;
  }

  /** True or false where that is known. */
  #holds(compares: readonly Compare[], held: readonly number[]): boolean | undefined {
    let isKnown = true;
    for (const compare of compares) {
      const one = this.#compare(compare, held[compare.key]);
      if (one === false) return false;
      if (one === undefined) isKnown = false;
    }
    return isKnown ? true : undefined;
  }

  #compare({ of: { target, result, operand } }: Compare, held: number): boolean | undefined {
    if (target === "value") {
      if (held === ABSENT) return false;
      // What is compared with counts as seen, so this is something else.
      if (held === UNSEEN) return result === "=" ? false : result === "!=" ? true : undefined;
      const { text } = this.#texts[held];
      if (result === "=") return text === operand;
      if (result === "!=") return text !== operand;
      return result === ">" ? text > operand : text < operand;
    }
    const number = operand as number;
    const least = held === ABSENT ? 0 : 1;
    const most = held === ABSENT ? 0 : Number.POSITIVE_INFINITY;
    switch (result) {
      case "=":
        return number < least || number > most ? false : least === most ? true : undefined;
      case "!=":
        return number < least || number > most ? true : least === most ? false : undefined;
      case ">":
        return least > number ? true : most <= number ? false : undefined;
      default:
        return most < number ? true : least >= number ? false : undefined;
    }
  }

  /**
   * What is held after the steps; undefined if an answer would be another; the same object if
   * nothing was written.
   */
  #run(steps: readonly Step[], before: readonly number[]): readonly number[] | undefined {
    let held = before;
    let own: number[] | undefined;
    for (const step of steps) {
      if (step.kind === "range") {
        if (step.values?.some((value, i) => held[step.keys[i]] !== value) === true)
          return undefined;
        continue;
      }
      if (step.kind === "never") return undefined;
      own ??= [...before];
      held = own;
      if (step.kind === "put") own[step.key] = step.value;
      else if (step.kind === "end") {
        for (const key of step.keys)
          if (this.#texts[own[key]].lease === step.lease) own[key] = ABSENT;
      } else {
        let deleted = 0;
        for (const key of step.keys) {
          if (own[key] !== ABSENT) deleted++;
          own[key] = ABSENT;
        }
        if (step.deleted !== undefined && step.deleted !== deleted) return undefined;
      }
    }
    return held;
  }

  #valueOf(text: string, lease: string | undefined): number {
    if (lease === undefined && !this.#seen.has(text)) return UNSEEN;
    const name = `${lease ?? ""} ${text}`;
    let number = this.#values.get(name);
    if (number === undefined) {
      this.#values.set(name, (number = this.#texts.length));
      this.#texts.push({ text, lease });
    }
    return number;
  }

  #keysOf(op: { readonly key: string; readonly end: string }): number[] {
    if (op.end === "") return [this.#numberOf(op.key)];
    return this.#keys.flatMap((key, i) => (key >= op.key && key < op.end ? [i] : []));
  }

  #steps(ops: readonly ModelOp[], answers: readonly OpAnswer[] | undefined): Step[] {
    return ops.map((op, i): Step => {
      const answer = answers?.[i];
      if (op.kind === "put")
        return {
          kind: "put",
          key: this.#numberOf(op.key),
          value: this.#valueOf(op.value, op.lease),
        };
      if (op.kind === "txn")
        throw new Error("the general judge knows no transactions within transactions");
      const keys = this.#keysOf(op);
      if (op.kind === "delete")
        return {
          kind: "delete",
          keys,
          deleted: answer?.kind === "delete" ? answer.deleted : undefined,
        };
      if (answer?.kind !== "range") return { kind: "range", keys, values: undefined };
      const found = new Map(
        answer.kvs.map(({ key, value, lease }) => [key, this.#valueOf(value, lease)]),
      );
      const values = keys.map((key) => found.get(this.#keys[key]) ?? ABSENT);
      const isWithin = values.filter((value) => value !== ABSENT).length === answer.kvs.length;
      // Without a limit, the count is that of the keys returned.
      const isLimited = (op.limit ?? 0) > 0 || op.countOnly === true;
      const isCounted =
        isLimited ||
        ((answer.count ?? answer.kvs.length) === answer.kvs.length && answer.more !== true);
      return isWithin && isCounted ? { kind: "range", keys, values } : { kind: "never" };
    });
  }

  #reach(op: number): Reach {
    const known = this.#reaches[op];
    if (known !== undefined) return known;
    const { compares, branches } = this.#plans[op];
    const looks = new Set(compares.map(({ key }) => key));
    const writes = new Set<number>();
    for (const step of [...(branches[0] ?? []), ...(branches[1] ?? [])]) {
      if (step.kind === "never") continue;
      if (step.kind === "put") writes.add(step.key);
      else if (step.kind === "delete" || step.kind === "end")
        for (const key of step.keys) writes.add(key);
      // What an operation found makes a difference only where its answer was seen.
      if (step.kind === "end" || (step.kind !== "put" && this.#answered[op]))
        for (const key of step.keys) looks.add(key);
    }
    const needs = new Set<number>();
    const provides = new Set<number>();
    for (const branch of branches) {
      const own = new Set<number>();
      for (const step of branch ?? []) {
        if (step.kind === "never") continue;
        if (step.kind === "put") provides.add(this.#place(step.key, step.value));
        else if (step.kind !== "range")
          for (const key of step.keys) provides.add(this.#place(key, ABSENT));
        else
          for (const [i, value] of (step.values ?? []).entries())
            if (!own.has(step.keys[i])) needs.add(this.#place(step.keys[i], value));
        if (step.kind === "put") own.add(step.key);
        else if (step.kind === "delete") for (const key of step.keys) own.add(key);
      }
    }
    const reach = { looks, writes, needs: [...needs], provides: [...provides] };
    this.#reaches[op] = reach;
    return reach;
  }

  #plan(op: Operation): Plan {
    const { request, outcome } = op;
    const answers = answersOf(op);
    let compares: Compare[] = [];
    let branches: Plan["branches"];
    if (request.kind === "txn") {
      compares = request.compares.map((of) => {
        const key = this.#numberOf(of.key);
        return { key, of };
      });
      const isOut = outcome?.kind === "answered";
      const takes = (branch: boolean) => !isOut || outcome.answer.succeeded === branch;
      branches = [
        takes(true) ? this.#steps(request.success, answers) : undefined,
        takes(false) ? this.#steps(request.failure, answers) : undefined,
      ];
    } else if (request.kind === "revoke") {
      const keys = [...(this.#leases.get(request.lease) ?? [])].map((key) => this.#numberOf(key));
      branches = [[{ kind: "end", lease: request.lease, keys }], undefined];
    } else branches = [this.#steps([request], answers), undefined];
    const isBlind =
      outcome?.kind !== "answered" &&
      (request.kind === "put" || (request.kind === "delete" && request.end === ""));
    return {
      compares,
      branches,
      blindKey: isBlind ? this.#keyNumbers.get(request.key) : undefined,
    };
  }
}
