/** A bug of the catalogue: a change of one place in a source, and where it is seen. */
import type { Changes } from "../base/options.ts";
import type { SourceBug } from "./source-edit.ts";

export interface CatalogueBug extends SourceBug {
  /** Test files that see it, or patterns of them; from the root of the repository. */
  readonly tests?: readonly string[];
  /**
   * How runs that can show it differ from those that seeds draw; absent if they need not differ,
   * "no" if no run shows it.
   */
  readonly sim?: Changes["set"] | "no";
  /** A seed that shows it: every build runs it. Without one, only `./dev mutants` plants the bug. */
  readonly seed?: number;
  /** The same of a random cluster of Raft machines (`./dev sim raft`). */
  readonly raftSeed?: number;
}
