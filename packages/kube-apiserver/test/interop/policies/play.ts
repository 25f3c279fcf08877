/** Sends the requests about admission policies, and compares answers. */
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { type ApiAccess, type ApiRequest, type ApiResponse, exchange } from "../rest/exchange.ts";
import { normalised } from "../rest/normalise.ts";
import { judgements, preparations } from "./cases.ts";

/** kube-apiserver compiles changed policies once a second. */
const SETTLED_MS = 3000;
/** An answer may be as before the policies for so long. */
const LIMIT_MS = 20_000;

async function answerTo(access: ApiAccess, request: ApiRequest): Promise<ApiResponse> {
  return normalised(await exchange(access, request));
}

/** kube-apiserver's answers. */
export async function record(access: ApiAccess): Promise<ApiResponse[]> {
  const answers: ApiResponse[] = [];
  for (const request of preparations()) answers.push(await answerTo(access, request));
  await delay(SETTLED_MS);
  for (const request of judgements()) answers.push(await answerTo(access, request));
  return answers;
}

export interface PolicyDifference {
  readonly request: ApiRequest;
  readonly ours: ApiResponse;
  readonly theirs: ApiResponse | undefined;
}

/** What differs from the answers. A judgement is asked for again until it is as expected. */
export async function differencesFrom(
  access: ApiAccess,
  theirs: readonly ApiResponse[],
): Promise<PolicyDifference[]> {
  const differences: PolicyDifference[] = [];
  const prepared = preparations();
  const endMs = performance.now() + LIMIT_MS;
  for (const [i, request] of [...prepared, ...judgements()].entries()) {
    const expected = theirs[i];
    let ours = await answerTo(access, request);
    while (
      i >= prepared.length &&
      !isDeepStrictEqual(ours, expected) &&
      performance.now() < endMs
    ) {
      await delay(20);
      ours = await answerTo(access, request);
    }
    if (!isDeepStrictEqual(ours, expected)) differences.push({ request, ours, theirs: expected });
  }
  return differences;
}
