/**
 * Examines every member of a cluster: its status over gRPC, its metrics and clock over HTTP, its
 * certificates in TLS handshakes. All requests run concurrently, so the whole takes at most two
 * deadlines: one for the endpoints of the command line, one for the members that they list.
 */

import type { Member, StatusResponse } from "@quorate/proto";
import {
  type ClientTls,
  type HttpResponse,
  type ShownCertificate,
  shownCertificate,
} from "../observe/http.ts";
import { labelOf, targetOf } from "../observe/listed-member.ts";
import { MetricsText } from "../observe/metrics-text.ts";
import type { Prober } from "../observe/prober.ts";
import { hasResponded } from "../observe/responded.ts";
import { printable } from "../observe/text.ts";
import type { Note } from "./finding.ts";
import type { ClockOffset, MemberView } from "./view.ts";

/** Most endpoints tried per member. */
const MAX_ENDPOINTS_OF_A_MEMBER = 8;
/** Most members examined; a note reports the others. */
export const MAX_MEMBERS = 64;

export interface LookOptions {
  /** The endpoints of --endpoints. */
  readonly endpoints: readonly string[];
  readonly tls: ClientTls | undefined;
  /** Timeout of each request. */
  readonly timeoutMs: number;
}

/** The view of the cluster, and what could not be examined. */
export interface Look {
  readonly members: readonly MemberView[];
  readonly notes: readonly Note[];
}

/** The results from one endpoint. */
interface Answers {
  readonly endpoint: string;
  readonly status: StatusResponse | undefined;
  readonly failure: string | undefined;
  readonly members: readonly Member[] | undefined;
  readonly scrape: HttpResponse | undefined;
  /** Why there are no metrics. */
  readonly scrapeFailure: string | undefined;
  readonly certificate: ShownCertificate | undefined;
}

/** Never rejects for problems of members: they are the result. */
export async function look(prober: Prober, options: LookOptions): Promise<Look> {
  const notes: Note[] = [];
  const given = await Promise.all(
    [...new Set(options.endpoints)].map((endpoint) => askAt(prober, endpoint, options)),
  );
  // The member with the highest applied index has the newest member list.
  const proxies = new Set(given.filter(isProxy));
  const answering = given.filter(hasResponded).filter((one) => !proxies.has(one));
  const [best] = [...answering].sort(
    (a, b) => b.status.raftAppliedIndex - a.status.raftAppliedIndex,
  );
  const listed = best?.members ?? answering.find(({ members }) => members !== undefined)?.members;
  if (listed === undefined && answering.length > 0)
    notes.push({ member: "cluster", text: "the member list is not available" });
  if (listed !== undefined && listed.length > MAX_MEMBERS) {
    notes.push({
      member: "cluster",
      text: `${listed.length - MAX_MEMBERS} of ${listed.length} members were not examined`,
    });
  }
  const led = new Set<Answers>();
  const members = await Promise.all(
    (listed ?? []).slice(0, MAX_MEMBERS).map(async (member) => {
      const own = given.filter((one) => !proxies.has(one) && leadsTo(one, member));
      for (const one of own) led.add(one);
      return memberView(prober, member, own, options, notes);
    }),
  );
  const elsewhere = given
    .filter((one) => !led.has(one))
    .map((one) => ({
      ...viewOf(undefined, one, undefined, notes),
      ...(proxies.has(one) ? { isProxy: true } : {}),
    }));
  return { members: [...members, ...elsewhere], notes };
}

/** Members have ids; a grpc-proxy with an address of its own lists itself, without one. */
function isProxy({ members }: Answers): boolean {
  return members?.some(({ ID }) => ID === 0n) === true;
}

function leadsTo({ status, endpoint }: Answers, member: Member): boolean {
  if (status !== undefined) return status.header?.memberId === member.ID;
  const address = (text: string): string => text.replace(/^\w+:\/\//, "").replace(/\/$/, "");
  return member.clientURLs.some((url) => address(url) === address(endpoint));
}

async function memberView(
  prober: Prober,
  member: Member,
  own: readonly Answers[],
  options: LookOptions,
  notes: Note[],
): Promise<MemberView> {
  const peerTarget = targetOf(member.peerURLs[0] ?? "", undefined);
  const peerCertificate =
    peerTarget?.secure === true ? certificateAt(peerTarget.address, options) : undefined;
  let found = own.find(({ status }) => status !== undefined) ?? own[0];
  if (found?.status === undefined) {
    const tried = new Set(own.map(({ endpoint }) => endpoint));
    const others = member.clientURLs
      .filter((url) => !tried.has(url))
      .slice(0, MAX_ENDPOINTS_OF_A_MEMBER);
    const asked = await Promise.all(others.map((endpoint) => askAt(prober, endpoint, options)));
    found = asked.find((one) => one.status?.header?.memberId === member.ID) ?? found ?? asked[0];
  }
  return viewOf(member, found, await peerCertificate, notes);
}

function viewOf(
  member: Member | undefined,
  found: Answers | undefined,
  peerCertificate: ShownCertificate | undefined,
  notes: Note[],
): MemberView {
  const label = printable(
    labelOf({ member, endpoints: found === undefined ? [] : [found.endpoint] }),
  );
  // A member that does not respond at all is a finding of its own.
  if (found?.status !== undefined && found.scrapeFailure !== undefined) {
    notes.push({
      member: label,
      text: `${found.scrapeFailure}: its disk, clock and limits were not examined`,
    });
  }
  const metrics = found?.scrape === undefined ? undefined : new MetricsText(found.scrape.body);
  return {
    label,
    endpoint: found?.endpoint ?? "",
    member,
    status: found?.status,
    failure: found === undefined ? "it has published no client URL" : found.failure,
    metrics,
    clock:
      found?.scrape === undefined || metrics === undefined
        ? undefined
        : clockOf(found.scrape, metrics),
    certificate: found?.certificate,
    peerCertificate,
  };
}

/** All requests to one endpoint, concurrently. */
async function askAt(prober: Prober, endpoint: string, options: LookOptions): Promise<Answers> {
  const target = targetOf(endpoint, options.tls);
  const reason = (error: unknown): string => printable((error as Error).message);
  const [status, members, scrape, certificate] = await Promise.all([
    prober.status(endpoint).then(
      (response) => ({ response, failure: undefined }),
      (error) => ({ response: undefined, failure: reason(error) }),
    ),
    prober.members(endpoint).catch(() => undefined),
    target === undefined ? undefined : scrapeAt(prober, endpoint, reason),
    target?.secure === true ? certificateAt(target.address, options) : undefined,
  ]);
  return {
    endpoint,
    status: status.response,
    failure: status.failure,
    members,
    scrape: scrape?.response,
    scrapeFailure: scrape?.failure,
    certificate,
  };
}

async function scrapeAt(
  prober: Prober,
  endpoint: string,
  reason: (error: unknown) => string,
): Promise<{ readonly response?: HttpResponse; readonly failure?: string }> {
  try {
    const response = await prober.metrics(endpoint);
    return response.status === 200
      ? { response }
      : { failure: `GET /metrics returns status ${response.status}` };
  } catch (error) {
    return { failure: `its metrics are not available (${reason(error)})` };
  }
}

async function certificateAt(
  address: string,
  { tls, timeoutMs }: LookOptions,
): Promise<ShownCertificate | undefined> {
  if (address.startsWith("unix:")) return undefined;
  // Without a response there is nothing to judge; the silent member is a finding of its own.
  return shownCertificate(address, tls, timeoutMs).catch(() => undefined);
}

/**
 * The member made its response between the sending of the request and the arrival of the response.
 */
function clockOf(
  { dateMs, sentMs, receivedMs }: HttpResponse,
  metrics: MetricsText,
): ClockOffset | undefined {
  const seconds = metrics.value("quorate_server_clock_seconds");
  if (seconds !== undefined)
    return { lowMs: seconds * 1000 - receivedMs, highMs: seconds * 1000 - sentMs };
  // The header has whole seconds, and may be a second old where a server caches it.
  return dateMs === undefined
    ? undefined
    : { lowMs: dateMs - receivedMs, highMs: dateMs + 2000 - sentMs };
}
