/** Sends the same random requests to two servers, one after another, and compares the responses. */
import { type Dice, type Draft, draft, requestOf, waitDraft } from "./generate.ts";
import { Indexes, normalised } from "./normalise.ts";
import type { HttpTarget, V2Response } from "./target.ts";

export interface Difference {
  /** Number of the request in the run. */
  readonly at: number;
  readonly request: string;
  readonly expected: string;
  readonly actual: string;
}

/** A difference that is intended. */
export interface Known {
  readonly why: string;
  readonly holds: (request: string, expected: string, actual: string) => boolean;
}

export interface ComparisonOptions {
  readonly reference: HttpTarget;
  readonly own: HttpTarget;
  readonly dice: Dice;
  readonly requests: number;
  /** Waits on single paths too; many of them end by their limit alone. */
  readonly waitsOnPaths: boolean;
  readonly known: readonly Known[];
  /** Differences after which the run ends. */
  readonly maxDifferences: number;
}

export interface Outcome {
  readonly differences: readonly Difference[];
  /** How often each known difference was seen. */
  readonly known: ReadonlyMap<string, number>;
  readonly requests: number;
  readonly writes: number;
}

/** One wait in so many requests. */
const WAIT_CHANCES = 15;

export async function compare(options: ComparisonOptions): Promise<Outcome> {
  const { reference, own, requests, maxDifferences } = options;
  const sides = [reference, own].map((target) => ({ target, indexes: new Indexes() }));
  const differences: Difference[] = [];
  const known = new Map<string, number>();
  let at = 0;
  for (; at < requests && differences.length < maxDifferences; at++) {
    const one = nextDraft(options, sides[0].indexes);
    const texts: string[] = [];
    let shown = "";
    for (const { target, indexes } of sides) {
      const request = requestOf(one, (ago) => indexes.ago(ago));
      const response = await target.send(request);
      note(one, response, indexes);
      texts.push(normalised(response, indexes));
      shown ||= `${request.method} ${request.path}?${request.query} ${request.body ?? ""}`;
    }
    const [expected, actual] = texts;
    if (expected === actual) continue;
    const why = options.known.find(({ holds }) => holds(shown, expected, actual))?.why;
    if (why === undefined) differences.push({ at, request: shown, expected, actual });
    else known.set(why, (known.get(why) ?? 0) + 1);
  }
  return { differences, known, requests: at, writes: sides[0].indexes.count };
}

/** Waits on everything end at once mostly. */
function nextDraft({ dice, waitsOnPaths }: ComparisonOptions, indexes: Indexes): Draft {
  if (indexes.count < 20 || dice.below(WAIT_CHANCES) > 0) return draft(dice);
  const one = waitDraft(dice);
  if (waitsOnPaths && dice.below(2) === 0) return one;
  return { ...one, path: "/v2/keys", fields: { ...one.fields, recursive: true } };
}

function note(one: Draft, { status, headers }: V2Response, indexes: Indexes): void {
  if (one.method === "GET" || one.method === "HEAD" || status >= 300) return;
  indexes.wrote(Number(headers["x-etcd-index"]));
}
