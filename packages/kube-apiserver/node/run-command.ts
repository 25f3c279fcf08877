/** Runs a command line of `quorate apiserver`. Programs that embed a server need none of it. */

/** Files are for the process's own user. */
const PRIVATE_UMASK = 0o077;

/** @param argv the arguments without the program's name */
export async function runApiServerCommand(argv: readonly string[]): Promise<void> {
  process.umask(PRIVATE_UMASK);
  const [{ processIo, runProgram }, { apiServerProgram }] = await Promise.all([
    import("@quorate/cli"),
    import("./program.ts"),
  ]);
  process.exitCode = await runProgram(apiServerProgram, argv, processIo);
}
