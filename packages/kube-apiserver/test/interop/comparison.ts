/** What the commands `./dev compare` beside kube-apiserver share: options, stored answers, report. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { readArguments, switchOption, valueOption } from "../../../../scripts/dev/command-line.ts";
import { withKubeApiserver } from "./kube-process.ts";
import { type ApiAccess, type ApiResponse, accessOf } from "./rest/exchange.ts";

/** The options of a comparison with a kube-apiserver of its own. @param what it answers */
export const comparisonOptions = (what: string) => ({
  etcd: valueOption(
    `an empty etcd: kube-apiserver (on PATH) is started on it, and compared with (default: its stored ${what} count)`,
  ),
  record: switchOption(`store kube-apiserver's ${what} for the test of the build`),
});

const pathIn = (directory: string): string => join(directory, "kube-apiserver-1.36.jsonl");

/** What kube-apiserver 1.36.3 answered, one JSON text a line of the directory's file. */
export function keptAnswers<T>(directory: string): T[] {
  const lines = readFileSync(pathIn(directory), "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as T);
}

export function keepAnswers(directory: string, answers: readonly unknown[]): void {
  const lines = answers.map((one) => `${JSON.stringify(one)}\n`);
  writeFileSync(pathIn(directory), lines.join(""));
  console.log(`${answers.length} answers stored`);
}

/** A request, as it is shown, with its response. */
export interface Answer {
  readonly request: string;
  readonly response: ApiResponse;
}

/** Prints what differs. Returns whether nothing does. */
export function areSame(ours: readonly Answer[], theirs: readonly Answer[]): boolean {
  let differences = 0;
  for (const [i, { request, response }] of ours.entries()) {
    const other = theirs[i]?.response;
    if (isDeepStrictEqual(response, other)) continue;
    differences++;
    console.log(`\n${request.slice(0, 600)}`);
    console.log(`  kube: ${JSON.stringify(other)}`);
    console.log(`  ours: ${JSON.stringify(response)}`);
  }
  console.log(`\n${theirs.length} answers, ${differences} differences`);
  return differences === 0;
}

/** The same requests to any server, and its answers. */
type Play = (access: ApiAccess) => Promise<Answer[]>;

/** Plays with a new server of ours. */
export const onOurs =
  (options: Parameters<typeof startApiServer>[0] = {}) =>
  async <T>(play: (access: ApiAccess) => Promise<T>): Promise<T> => {
    await using api = await startApiServer(options);
    return await play(accessOf(api.kubeconfig));
  };

/**
 * A command that plays with a server of ours and compares the answers with kube-apiserver's, which
 * are those of the directory unless the command line names an etcd. Sets the exit code.
 */
export async function comparePlay(
  help: string,
  directory: string,
  play: Play,
  withOurs: (play: Play) => Promise<Answer[]> = onOurs(),
): Promise<void> {
  const { values } = readArguments(help, comparisonOptions("answers"));
  const { etcd, record } = values;
  const theirs =
    etcd === undefined ? keptAnswers<Answer>(directory) : await withKubeApiserver(etcd, play);
  if (record) keepAnswers(directory, theirs);
  process.exitCode = areSame(await withOurs(play), theirs) ? 0 : 1;
}
