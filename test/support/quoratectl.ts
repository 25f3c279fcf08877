/** Runs quoratectl in this process, as the program would run: its output is kept as text. */
import { quoratectl } from "@quorate/ctl";
import type { TestCluster } from "./cluster.ts";
import { type ProgramResult, runInProcess } from "./ctl-io.ts";

/** The flags with which clients of a cluster present themselves; none where it talks plainly. */
export function tlsClientFlags({ certs }: TestCluster): string[] {
  return certs === undefined
    ? []
    : [`--cacert=${certs.ca}`, `--cert=${certs.client}`, `--key=${certs.clientKey}`];
}

/**
 * Runs a command line against endpoints. @param onStdout called with each piece as it is printed
 */
export function runQuoratectl(
  endpoints: readonly string[],
  args: readonly string[],
  onStdout: (text: string) => void = () => {},
): Promise<ProgramResult> {
  return runInProcess(quoratectl, [`--endpoints=${endpoints.join(",")}`, ...args], { onStdout });
}
