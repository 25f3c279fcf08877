/** What programs that measure Quorate and etcd in turn have in common. */
import { refuse, switchOption, valueOption } from "../scripts/dev/command-line.ts";
import { type Executable, etcd, quorate } from "../test/support/executables.ts";

/** Options of the command line; a program that differs in one has its own in its place. */
export const comparison = {
  rounds: valueOption("rounds; the programs take turns to go first", "3"),
  seconds: valueOption("measured seconds of each load", "5"),
  only: valueOption("quorate or etcd alone"),
} as const;

/** The option of a program that can print its table for the documentation. */
export const markdown = switchOption(
  "the table for docs/internals/benchmarks.md (progress goes to standard error)",
);

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
