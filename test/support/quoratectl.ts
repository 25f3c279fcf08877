/** Runs quoratectl in this process, as the program would run: its output is kept as text. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { quoratectl, runProgram } from "@quorate/ctl";
import type { TestCluster } from "./cluster.ts";

export interface CtlResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The flags with which clients of a cluster present themselves; none where it talks plainly. */
export function tlsClientFlags({ certs }: TestCluster): string[] {
  return certs === undefined ? [] : [`--cacert=${certs.ca}`, `--cert=${certs.client}`, `--key=${certs.clientKey}`];
}

/** Runs a command line against endpoints. @param onStdout is told each piece as it is printed */
export async function runQuoratectl(
  endpoints: readonly string[],
  args: readonly string[],
  onStdout: (text: string) => void = () => {},
): Promise<CtlResult> {
  let stdout = "";
  let stderr = "";
  const code = await runProgram(quoratectl, [`--endpoints=${endpoints.join(",")}`, ...args], {
    stdout: (content) => {
      const text = typeof content === "string" ? content : Buffer.from(content).toString();
      stdout += text;
      onStdout(text);
    },
    stderr: (text) => void (stderr += text),
    stderrIsTerminal: false,
    stdin: (async function* () {})(),
    env: {},
    readFile: (path) => readFileSync(path),
    nowNs: () => process.hrtime.bigint(),
    sleep: (ms) => delay(ms),
    onStop: () => () => {},
    askPassword: () => Promise.reject(new Error("no password is needed")),
  });
  return { code, stdout, stderr };
}
