/** kube-apiserver 1.36.3's answers, as `./dev compare routes --record` stored them. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { accepted, type RouteDifference } from "./differences.ts";
import type { RouteAnswers } from "./play.ts";

export const keptPath: string = join(import.meta.dirname, "kube-apiserver-1.36.jsonl");

/** Lines: all answers, then for each path and user [number of the answer, methods, ...]. */
type KeptRow = readonly [path: string, user: string, ...(string | number)[]];

export function keptAnswers(): RouteAnswers[] {
  const [first, ...lines] = readFileSync(keptPath, "utf8").trim().split("\n");
  const texts = JSON.parse(first) as readonly string[];
  return lines.map((line) => {
    const [path, user, ...pairs] = JSON.parse(line) as KeptRow;
    const answers: Record<string, string> = {};
    for (let at = 0; at < pairs.length; at += 2)
      answers[texts[pairs[at] as number]] = pairs[at + 1] as string;
    return { path, user, answers };
  });
}

export function keepAnswers(rows: readonly RouteAnswers[]): void {
  const numbers = new Map<string, number>();
  const lines = rows.map(({ path, user, answers }) => {
    const pairs = Object.entries(answers).flatMap(([text, methods]) => {
      if (!numbers.has(text)) numbers.set(text, numbers.size);
      return [numbers.get(text)!, methods];
    });
    return JSON.stringify([path, user, ...pairs]);
  });
  writeFileSync(keptPath, `${[JSON.stringify([...numbers.keys()]), ...lines].join("\n")}\n`);
}

const byMethod = ({ answers }: RouteAnswers): Map<string, string> =>
  new Map(
    Object.entries(answers).flatMap(([answer, methods]) =>
      methods.split(" ").map((method) => [method, answer] as const),
    ),
  );

/** @param used collects the accepted differences that were met */
export function routeDifferences(
  ours: readonly RouteAnswers[],
  theirs: readonly RouteAnswers[],
  used: Set<string> = new Set(),
): RouteDifference[] {
  const keyOf = ({ path, user }: RouteAnswers): string => `${user} ${path}`;
  const kept = new Map(theirs.map((row) => [keyOf(row), row]));
  return ours.flatMap((row) => {
    const other = kept.get(keyOf(row));
    if (other !== undefined && isDeepStrictEqual(row, other)) return [];
    const expected = other === undefined ? new Map<string, string>() : byMethod(other);
    return [...byMethod(row)].flatMap(([method, answer]) => {
      const difference = {
        request: `${method} ${row.path}`,
        user: row.user,
        ours: answer,
        theirs: expected.get(method) ?? "nothing is kept",
      };
      if (difference.theirs === answer) return [];
      const why = accepted.find(({ is }) => is(difference, method, row.path));
      if (why === undefined) return [difference];
      used.add(why.why);
      return [];
    });
  });
}
