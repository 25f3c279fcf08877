/**
 * Bounds of the evaluation of expressions. Each node of an expression that is evaluated costs one,
 * and more where it yields a long text or list; an expression stops when its budget is used up.
 */

/**
 * What one expression may cost: some 10 ms. Kubernetes has four times as much (pkg/apis/cel:
 * PerCallLimit), but runs other requests on other threads meanwhile.
 */
export const PER_CALL_BUDGET = 250_000;
/** What all expressions for one object may cost (RuntimeCELCostBudget). */
export const OBJECT_BUDGET = 10_000_000;

const CHARS_PER_UNIT = 16;

/** Thrown inside an evaluation; whether it was is asked of the budget, as "||" hides errors. */
export class BudgetError extends RangeError {}

/** The budget of the evaluation that runs. Evaluations are synchronous, so there is one. */
class Budget {
  /** Between evaluations nothing is counted against a limit. */
  #limit = Number.POSITIVE_INFINITY;
  #used = 0;

  /** What the present evaluation has cost. */
  get used(): number {
    return this.#used;
  }

  get isExceeded(): boolean {
    return this.#used > this.#limit;
  }

  start(limit: number): void {
    this.#limit = limit;
    this.#used = 0;
  }

  /** The evaluation has ended. */
  end(): void {
    this.#limit = Number.POSITIVE_INFINITY;
  }

  /** Throws BudgetError where the budget is used up. */
  charge(cost: number): void {
    this.#used += cost;
    if (this.#used > this.#limit) throw new BudgetError("actual cost limit exceeded");
  }

  /** Charges for a value by its length. */
  chargeValue(value: unknown): void {
    if (typeof value === "string") this.charge(Math.floor(value.length / CHARS_PER_UNIT));
    else if (Array.isArray(value)) this.charge(Math.floor(value.length / CHARS_PER_UNIT));
  }
}

export const budget: Budget = new Budget();
