/** Our responses beside others. */
import { isDeepStrictEqual } from "node:util";
import { isIntended } from "./differences.ts";
import { type ApiAccess, type ApiRequest, type ApiResponse, exchange } from "./exchange.ts";
import { normalised } from "./normalise.ts";
import { play, steps } from "./requests.ts";

export interface Played {
  readonly request: ApiRequest;
  readonly response: ApiResponse;
}

/** Sends all requests to a new server. */
export async function responsesOf(access: ApiAccess, all = steps()): Promise<Played[]> {
  const played = await play(all, (request) => exchange(access, request));
  return played.map(({ request, response }) => ({ request, response: normalised(response) }));
}

/** The requests with another response, but for the differences on purpose. */
export function differencesOf(
  ours: readonly Played[],
  theirs: readonly ApiResponse[],
): { readonly request: ApiRequest; readonly ours: ApiResponse; readonly theirs: ApiResponse }[] {
  return ours.flatMap(({ request, response }, index) => {
    const other = theirs[index];
    const same = isDeepStrictEqual(response, other) || isIntended(request, response);
    return same ? [] : [{ request, ours: response, theirs: other }];
  });
}
