/** What programs that measure Quorate and etcd in turn have in common. */
import { refuse } from "../scripts/dev/command-line.ts";
import { type Executable, etcd, quorate } from "../test/support/executables.ts";

/** Options of the command line; a program that differs in one has its own in its place. */
export const comparison = {
  rounds: {
    type: "string",
    default: "3",
    requiresArg: true,
    describe: "rounds; the programs take turns to go first",
  },
  seconds: {
    type: "string",
    default: "5",
    requiresArg: true,
    describe: "measured seconds of each load",
  },
  only: { type: "string", requiresArg: true, describe: "quorate or etcd alone" },
} as const;

/** The option of a program that can print its table for the documentation. */
export const markdown = {
  type: "boolean",
  default: false,
  describe: "the table for docs/internals/benchmarks.md (progress goes to standard error)",
} as const;

/** The programs that are there, or the one of --only. Ends the process with 2 if none is. */
export function programsOf(
  only: string | undefined,
  all: readonly (Executable | undefined)[] = [quorate, etcd],
): readonly Executable[] {
  const programs = all
    .filter((one) => one !== undefined)
    .filter(({ name }) => only === undefined || name === only);
  if (programs.length === 0) refuse("there is nothing to run: the program is not installed");
  return programs;
}

/** The order of a round: the programs take turns to go first. */
export function inTurn<T>(programs: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? programs : programs.toReversed();
}
