/** Looks at every member of a cluster: its status over gRPC, its metrics and its clock over HTTP, its certificates in TLS handshakes. */
import { type Client, parseEndpoint } from "@quorate/client";
import { idToHex, type Member, type StatusResponse } from "@quorate/proto";
import { type ClientTls, type HttpAnswer, httpGet, type ShownCertificate, shownCertificate, type Target } from "../observe/http.ts";
import { MetricsText } from "../observe/metrics-text.ts";
import type { Note } from "./finding.ts";
import type { ClockOffset, MemberView } from "./view.ts";

export interface LookOptions {
  /** Those of --endpoints. */
  readonly endpoints: readonly string[];
  readonly tls: ClientTls | undefined;
  /** For each of the things that are looked at. */
  readonly timeoutMs: number;
}

/** What was seen, and what could not be looked at. */
export interface Look {
  readonly members: readonly MemberView[];
  readonly notes: readonly Note[];
}

/** A member to look at: as the cluster lists it, with the endpoints that may lead to it, or an endpoint alone. */
interface Place {
  readonly member: Member | undefined;
  readonly endpoints: readonly string[];
  /** What the endpoint has said already. */
  readonly status: Status | undefined;
}

type Status = { readonly endpoint: string; readonly answer: StatusResponse } | { readonly endpoint: string; readonly failure: string };

/** Never rejects for what is wrong with members: that is what was looked for. */
export async function look(client: Client, options: LookOptions): Promise<Look> {
  const asked = await Promise.all(options.endpoints.map((endpoint) => statusAt(client, endpoint)));
  const notes: Note[] = [];
  const places = placesOf(asked, await memberList(client, asked, notes));
  const members = await Promise.all(places.map((place) => lookAt(client, place, options, notes)));
  return { members, notes };
}

async function statusAt(client: Client, endpoint: string): Promise<Status> {
  try {
    return { endpoint, answer: await client.status(endpoint) };
  } catch (error) {
    return { endpoint, failure: whyNot(error) };
  }
}

/** The last cause is what happened; what is around it is that time was up. */
function whyNot(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const said = error.cause instanceof Error ? error.cause.message : error.message;
  // grpc-js wraps what the system said.
  return said.replace(/^No connection established\. Last error: (?:Error: )?/, "").replace(/\. Resolution note: $/, "");
}

/** The members as one of them knows them, whether or not a quorum is there. */
async function memberList(client: Client, asked: readonly Status[], notes: Note[]): Promise<readonly Member[]> {
  if (!asked.some((one) => "answer" in one)) return [];
  try {
    return (await client.memberList({ linearizable: false })).members;
  } catch (error) {
    notes.push({ member: "cluster", text: `the list of members could not be had: ${whyNot(error)}` });
    return [];
  }
}

/** Every member once, under the endpoint that was given for it or those that it has told; then endpoints that led nowhere. */
function placesOf(asked: readonly Status[], members: readonly Member[]): Place[] {
  const led = new Set<Status>();
  const places = members.map((member): Place => {
    const own = asked.find((one) => "answer" in one && one.answer.header?.memberId === member.ID);
    for (const one of asked) if (("answer" in one && one.answer.header?.memberId === member.ID) || isUrlOf(member, one)) led.add(one);
    return { member, endpoints: own === undefined ? member.clientURLs : [own.endpoint], status: own };
  });
  return [...places, ...asked.filter((one) => !led.has(one)).map((one) => ({ member: undefined, endpoints: [one.endpoint], status: one }))];
}

function isUrlOf(member: Member, { endpoint }: Status): boolean {
  const address = (text: string): string => text.replace(/^\w+:\/\//, "").replace(/\/$/, "");
  return member.clientURLs.some((url) => address(url) === address(endpoint));
}

async function lookAt(client: Client, { member, endpoints, status }: Place, options: LookOptions, notes: Note[]): Promise<MemberView> {
  const label = member === undefined ? (endpoints[0] ?? "?") : member.name || `${idToHex(member.ID)} (${member.peerURLs.join(",")})`;
  const found = status ?? (await firstAnswer(client, endpoints));
  const endpoint = found?.endpoint ?? "";
  const target = endpoint === "" ? undefined : targetOf(endpoint, options.tls);
  const peer = member === undefined ? undefined : targetOf(member.peerURLs[0] ?? "", undefined);
  const [scrape, certificate, peerCertificate] = await Promise.all([
    target === undefined ? undefined : metricsAt(target, options, label, notes),
    target?.secure === true ? certificateAt(target, options) : undefined,
    peer?.secure === true ? certificateAt(peer, options) : undefined,
  ]);
  const metrics = scrape === undefined ? undefined : new MetricsText(scrape.body);
  return {
    label,
    endpoint,
    member,
    status: found !== undefined && "answer" in found ? found.answer : undefined,
    failure: found === undefined ? "it has told no client URL" : "failure" in found ? found.failure : undefined,
    metrics,
    clock: scrape === undefined ? undefined : clockOf(scrape, metrics!),
    certificate,
    peerCertificate,
  };
}

/** The status at the first endpoint that gives one, else the last failure. */
async function firstAnswer(client: Client, endpoints: readonly string[]): Promise<Status | undefined> {
  let last: Status | undefined;
  for (const endpoint of endpoints) {
    last = await statusAt(client, endpoint);
    if ("answer" in last) return last;
  }
  return last;
}

function targetOf(endpoint: string, tls: ClientTls | undefined): Target | undefined {
  try {
    return parseEndpoint(endpoint, tls !== undefined && tls.plainByDefault !== true);
  } catch {
    return undefined;
  }
}

async function metricsAt(target: Target, { tls, timeoutMs }: LookOptions, member: string, notes: Note[]): Promise<HttpAnswer | undefined> {
  try {
    const answer = await httpGet(target, "/metrics", tls, timeoutMs);
    if (answer.status === 200) return answer;
    notes.push({ member, text: `GET /metrics is answered with ${answer.status}: its disk, clock and limits were not looked at` });
  } catch (error) {
    notes.push({ member, text: `its metrics cannot be had (${(error as Error).message}): its disk, clock and limits were not looked at` });
  }
  return undefined;
}

async function certificateAt({ address }: Target, { tls, timeoutMs }: LookOptions): Promise<ShownCertificate | undefined> {
  if (address.startsWith("unix:")) return undefined;
  // Without an answer there is nothing to judge; that the member does not answer is found by itself.
  return shownCertificate(address, tls, timeoutMs).catch(() => undefined);
}

/** The member made its answer at some time between the request's leaving and the answer's coming. */
function clockOf({ dateMs, sentMs, receivedMs }: HttpAnswer, metrics: MetricsText): ClockOffset | undefined {
  const seconds = metrics.value("quorate_server_clock_seconds");
  if (seconds !== undefined) return { lowMs: seconds * 1000 - receivedMs, highMs: seconds * 1000 - sentMs };
  // The header is cut to whole seconds, and may be a second old already where a server keeps it.
  return dateMs === undefined ? undefined : { lowMs: dateMs - receivedMs, highMs: dateMs + 2000 - sentMs };
}
