/** Runs the requests against a member and compares what it sends with what etcd sent. */
import { Agent } from "node:http";
import { startCluster, type TestCluster } from "../../support/cluster.ts";
import type { Executable } from "../../support/executables.ts";
import { KNOWN_DIFFERENCES } from "./differences.ts";
import { type GatewayResponse, type Patience, send } from "./exchange.ts";
import { normalised } from "./normalise.ts";
import type { GatewayRequest } from "./request.ts";

/** A stream that sends nothing for so long has sent what it has. */
const QUIET_MS = 400;
/** The same where it is known what it should send. */
const MAX_QUIET_MS = 60_000;

/** A pair of responses that differ, and are not on the list. */
export interface SeenDifference {
  readonly request: GatewayRequest;
  readonly etcd: GatewayResponse;
  readonly ours: GatewayResponse;
}

/**
 * One member whose ids and URLs do not depend on its ports: etcd derives them from what is
 * advertised. Pages of other sites may write, as they may with etcd by default: a request that one
 * of both refuses would make all later ones differ. The caller destroys it.
 */
export function startMember(executable: Executable): Promise<TestCluster> {
  return startCluster({
    executable,
    size: 1,
    advertisedPeerUrlOf: () => "http://127.0.0.1:2380",
    flags: ["--advertise-client-urls=http://127.0.0.1:2379", "--cors=*"],
  });
}

/**
 * The responses to the requests, one after the other.
 * @param expected etcd's, so that no time limit decides what a stream has sent
 */
export async function responsesOf(
  address: string,
  requests: readonly GatewayRequest[],
  expected: readonly GatewayResponse[] = [],
): Promise<GatewayResponse[]> {
  const agent = new Agent({ keepAlive: true });
  const tokens = new Map<string, string>();
  const responses: GatewayResponse[] = [];
  try {
    for (const [i, request] of requests.entries()) {
      const sent = { ...request, headers: withTokens(request.headers, tokens) };
      const response = await send(address, agent, sent, patienceFor(request, expected[i]));
      rememberToken(request, response, tokens);
      responses.push(normalised(request, response));
    }
  } finally {
    agent.destroy();
  }
  return responses;
}

function patienceFor(request: GatewayRequest, expected: GatewayResponse | undefined): Patience {
  // For no response at all there is only time.
  if (expected === undefined || expected.status === 0)
    return { quietMs: QUIET_MS, isWhole: () => false };
  const isWhole = (body: string): boolean =>
    expected.end === "open" && normalised(request, { ...expected, body }).body === expected.body;
  return { quietMs: MAX_QUIET_MS, isWhole };
}

function withTokens(
  headers: GatewayRequest["headers"],
  tokens: ReadonlyMap<string, string>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      value.replace(/\{token:(\w+)\}/, (_, user: string) => tokens.get(user) ?? ""),
    ]),
  );
}

function rememberToken(
  { path, body }: GatewayRequest,
  response: GatewayResponse,
  tokens: Map<string, string>,
): void {
  if (path !== "/v3/auth/authenticate" || response.status !== 200) return;
  const user = /"name":"(\w+)"/.exec(body)?.[1];
  const token = /"token": ?"([^"]+)"/.exec(response.body)?.[1];
  if (user !== undefined && token !== undefined) tokens.set(user, token);
}

/** What differs between the responses of etcd and ours, without what is listed. */
export function differencesOf(
  requests: readonly GatewayRequest[],
  etcd: readonly GatewayResponse[],
  ours: readonly GatewayResponse[],
): { readonly seen: SeenDifference[]; readonly listed: ReadonlyMap<string, number> } {
  const seen: SeenDifference[] = [];
  const listed = new Map<string, number>();
  requests.forEach((request, i) => {
    if (JSON.stringify(etcd[i]) === JSON.stringify(ours[i])) return;
    const known = KNOWN_DIFFERENCES.find(({ applies }) => applies(request, etcd[i], ours[i]));
    if (known === undefined) seen.push({ request, etcd: etcd[i], ours: ours[i] });
    else listed.set(known.reason, (listed.get(known.reason) ?? 0) + 1);
  });
  return { seen, listed };
}
