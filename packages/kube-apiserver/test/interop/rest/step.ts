/** One step of the comparison. */
import type { ApiRequest } from "./exchange.ts";

/** A request, or one that is made from the last object that a path responded with. */
export type Step = ApiRequest | ((last: (path: string) => Record<string, unknown>) => ApiRequest);
