/** The command line of a generator: nothing, --check or --help. */
import { parseArgs } from "node:util";

/**
 * What a generator is to do: write its files, or check them; else the exit code, after --help (0)
 * or a mistake (2).
 * @param name the script's file name
 * @param output what it writes, for the help
 */
export function readMode(
  name: string,
  output: string,
  args: readonly string[],
): "write" | "check" | 0 | 2 {
  const usage = `usage: node scripts/${name} [--check]

Writes ${output}.

  --check    write nothing; exit with 1 if a file would change
  --help     print this text
`;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { check: { type: "boolean" }, help: { type: "boolean", short: "h" } },
    });
    if (values.help !== true) return values.check === true ? "check" : "write";
    process.stdout.write(usage);
    return 0;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    return 2;
  }
}
