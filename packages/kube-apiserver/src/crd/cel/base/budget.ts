/**
 * Bounds of the evaluation of expressions, in Kubernetes' units of cost; an expression stops when
 * its budget is used up.
 */

/** What one expression may cost (apiserver: pkg/apis/cel/config.go: PerCallLimit). */
export const PER_CALL_BUDGET = 1_000_000;
/** Steps of one expression, whatever they cost: they hold the event loop for some 10 ms. */
export const PER_CALL_STEPS = 250_000;
/** What all expressions for one object may cost (apiserver: RuntimeCELCostBudget). */
export const OBJECT_BUDGET = 10_000_000;

/** Thrown inside an evaluation; whether it was is asked of the budget, as "||" hides errors. */
export class BudgetError extends RangeError {}

/** The budget of the evaluation that runs. Evaluations are synchronous, so there is one. */
class Budget {
  /** Between evaluations nothing is counted against a limit. */
  #limit = Number.POSITIVE_INFINITY;
  #used = 0;
  #steps = 0;

  /** What the present evaluation has cost. */
  get used(): number {
    return this.#used;
  }

  get isExceeded(): boolean {
    return this.#used > this.#limit || this.#steps > PER_CALL_STEPS;
  }

  start(limit: number): void {
    this.#limit = limit;
    this.#used = 0;
    this.#steps = 0;
  }

  /** The evaluation has ended. */
  end(): void {
    this.#limit = Number.POSITIVE_INFINITY;
    this.#steps = 0;
  }

  /** One step of this cost. Throws BudgetError where the budget is used up. */
  charge(cost: number): void {
    this.#used += cost;
    this.#steps++;
    if (this.isExceeded) throw new BudgetError("actual cost limit exceeded");
  }

  /** Throws BudgetError where work of this cost, which is charged later, is too much. */
  reserve(cost: number): void {
    if (this.#used + cost > this.#limit) throw new BudgetError("actual cost limit exceeded");
  }
}

export const budget: Budget = new Budget();
