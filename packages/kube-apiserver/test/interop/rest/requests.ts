/** The requests, in the order in which they are sent. Later ones may use earlier responses. */
import { configMapRequests } from "./configmap-requests.ts";
import type { ApiRequest, ApiResponse } from "./exchange.ts";
import { kindRequests } from "./kind-requests.ts";
import { namespaceRequests } from "./namespace-requests.ts";
import { NAMESPACES, namespace } from "./objects.ts";
import { optionRequests } from "./option-requests.ts";
import { randomSteps } from "./random-requests.ts";
import type { Step } from "./step.ts";
import { workloadRequests } from "./workload-requests.ts";

/** Of the random requests among all. */
const KEPT_SEED = 1;
const KEPT_COUNT = 200;

/** Random requests, after the namespace for them. */
export function randomised(seed: number, count: number): Step[] {
  const first: Step = { method: "POST", path: NAMESPACES, body: namespace("t") };
  return [first, ...randomSteps(seed, count)];
}

/** All requests. The server must be new. */
export function steps(): Step[] {
  return [
    { method: "POST", path: NAMESPACES, body: namespace("t") },
    ...configMapRequests(),
    ...optionRequests(),
    ...namespaceRequests(),
    ...kindRequests(),
    ...workloadRequests(),
    ...randomSteps(KEPT_SEED, KEPT_COUNT),
  ];
}

/** Sends all requests, one after another. */
export async function play(
  all: readonly Step[],
  send: (request: ApiRequest) => Promise<ApiResponse>,
): Promise<{ readonly request: ApiRequest; readonly response: ApiResponse }[]> {
  const seen = new Map<string, Record<string, unknown>>();
  const played: { request: ApiRequest; response: ApiResponse }[] = [];
  for (const step of all) {
    const request = typeof step === "function" ? step((path) => seen.get(path) ?? {}) : step;
    const response = await send(request);
    const body = response.body as { kind?: string; metadata?: { name?: string } };
    const { name } = body?.metadata ?? {};
    const dry = `${request.path} ${JSON.stringify(request.body)}`.includes("dryRun");
    if (name !== undefined && body.kind !== "Status" && !dry) {
      const [path] = request.path.split("?");
      seen.set(request.method === "POST" ? `${path}/${name}` : path, { ...body });
    }
    played.push({ request, response });
  }
  return played;
}
