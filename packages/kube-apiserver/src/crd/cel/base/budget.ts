/**
 * Bounds of the evaluation of expressions, in Kubernetes' units of cost; an expression stops when
 * its budget is used up.
 */

/** What one expression may cost (apiserver: pkg/apis/cel/config.go: PerCallLimit). */
export const PER_CALL_BUDGET = 1_000_000;
/**
 * Steps of one expression, whatever they cost: they hold the event loop for some 10 ms. Texts whose
 * characters are counted take steps, too.
 */
export const PER_CALL_STEPS = 250_000;
/** So many characters are looked at in the time of one step. */
const CHARACTERS_PER_STEP = 16;
/** What all expressions for one object may cost (apiserver: RuntimeCELCostBudget). */
export const OBJECT_BUDGET = 10_000_000;

/** Ends an evaluation; "||" and loops do not hide it, as they do errors of expressions. */
export class Interruption extends RangeError {}

/** Thrown where the budget is used up; whether it was is asked of the budget. */
export class BudgetError extends Interruption {}

/** The budget of the evaluation that runs. Evaluations are synchronous, so there is one. */
class Budget {
  /** Between evaluations nothing is counted. */
  #isRunning = false;
  #limit = 0;
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
    this.#isRunning = true;
    this.#limit = limit;
    this.#used = 0;
    this.#steps = 0;
  }

  /** The evaluation has ended. */
  end(): void {
    this.#isRunning = false;
  }

  /** Runs an evaluation inside of another one: its costs are its own, its steps are of both. */
  nested<T>(run: () => T): T {
    const [limit, used, steps] = [this.#limit, this.#used, this.#steps];
    try {
      return run();
    } finally {
      this.#isRunning = true;
      [this.#limit, this.#used, this.#steps] = [limit, used, steps + this.#steps];
    }
  }

  /** One step of this cost. Throws BudgetError where the budget is used up. */
  charge(cost: number): void {
    this.#count(cost, 1);
  }

  /** Work on a text, at no cost. Throws BudgetError where the budget is used up. */
  walk(characters: number): void {
    this.#count(0, characters / CHARACTERS_PER_STEP);
  }

  #count(cost: number, steps: number): void {
    if (!this.#isRunning) return;
    this.#used += cost;
    this.#steps += steps;
    if (this.isExceeded) throw new BudgetError("actual cost limit exceeded");
  }

  /** Throws BudgetError where work of this cost, which is charged later, is too much. */
  reserve(cost: number): void {
    if (this.#isRunning && this.#used + cost > this.#limit)
      throw new BudgetError("actual cost limit exceeded");
  }
}

export const budget: Budget = new Budget();
