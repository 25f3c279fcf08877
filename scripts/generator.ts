/** The command line of a generator: nothing, --check or --help. */
import { readArguments, switchOption } from "./dev/command-line.ts";

/**
 * Whether a generator is to write its files or to check them. Ends the process after --help (0) or
 * a mistake (2).
 * @param name the script's file name
 * @param output what it writes, for the help
 */
export function readMode(name: string, output: string, args: readonly string[]): "write" | "check" {
  const { values } = readArguments(
    `node scripts/${name} [OPTIONS]: writes ${output}`,
    {
      check: switchOption("write nothing; exit with 1 if a file would change"),
    },
    "",
    args,
  );
  return values.check ? "check" : "write";
}
