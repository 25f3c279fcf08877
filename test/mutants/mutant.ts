/**
 * A bug to plant: one place of the source, as the text before and after, and which tests may see
 * it. It is planted while modules are loaded (plant.ts; packages/sim for the simulator), so no file
 * changes.
 */
import type { Changes, SourceBug } from "@quorate/sim";

export interface Mutant extends SourceBug {
  /** In words that say what the product does wrong. */
  readonly name: string;
  /**
   * Test files, or patterns of them, that are run with the bug; from the root of the repository.
   */
  readonly tests: readonly string[];
  /**
   * How the simulator's runs differ from those that seeds draw; "no" where its runs cannot show the
   * bug.
   */
  readonly sim: Changes["set"] | "default" | "no";
  /** Seeds that the simulator takes at the most; 400 unless said. */
  readonly maxSeeds?: number;
}
