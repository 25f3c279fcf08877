/**
 * Looks at every member of a cluster: its status over gRPC, its metrics and its clock over HTTP,
 * its certificates in TLS handshakes. All members are asked side by side, and all that is asked of
 * one as well, so that the whole takes two deadlines at the most: one for the endpoints that were
 * given, one for the members that they tell of.
 */
import type { Member, StatusResponse } from "@quorate/proto";
import {
  type ClientTls,
  type HttpAnswer,
  type ShownCertificate,
  shownCertificate,
} from "../observe/http.ts";
import type { Looker } from "../observe/looker.ts";
import { MetricsText } from "../observe/metrics-text.ts";
import { labelOf, targetOf } from "../observe/places.ts";
import { printable } from "../observe/text.ts";
import type { Note } from "./finding.ts";
import type { ClockOffset, MemberView } from "./view.ts";

/** Endpoints of one member that are asked. */
const MAX_ENDPOINTS_OF_A_MEMBER = 8;
/** Members that are looked at; what a cluster lists beyond them is noted. */
export const MAX_MEMBERS = 64;

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

/** What an endpoint has said, or why it has not. */
interface Answers {
  readonly endpoint: string;
  readonly status: StatusResponse | undefined;
  readonly failure: string | undefined;
  readonly members: readonly Member[] | undefined;
  readonly scrape: HttpAnswer | undefined;
  /** Why there are no metrics. */
  readonly scrapeFailure: string | undefined;
  readonly certificate: ShownCertificate | undefined;
}

/** Never rejects for what is wrong with members: that is what was looked for. */
export async function look(looker: Looker, options: LookOptions): Promise<Look> {
  const notes: Note[] = [];
  const given = await Promise.all(
    [...new Set(options.endpoints)].map((endpoint) => askAt(looker, endpoint, options)),
  );
  // Who has applied most knows best who is a member.
  const answering = given.filter(({ status }) => status !== undefined);
  const [best] = [...answering].sort(
    (a, b) => b.status!.raftAppliedIndex - a.status!.raftAppliedIndex,
  );
  const listed = best?.members ?? answering.find(({ members }) => members !== undefined)?.members;
  if (listed === undefined && answering.length > 0)
    notes.push({ member: "cluster", text: "the list of members could not be had" });
  if (listed !== undefined && listed.length > MAX_MEMBERS) {
    notes.push({
      member: "cluster",
      text: `${listed.length - MAX_MEMBERS} of ${listed.length} members were not looked at`,
    });
  }
  const led = new Set<Answers>();
  const members = await Promise.all(
    (listed ?? []).slice(0, MAX_MEMBERS).map(async (member) => {
      const own = given.filter((one) => leadsTo(one, member));
      for (const one of own) led.add(one);
      return memberView(looker, member, own, options, notes);
    }),
  );
  const elsewhere = given
    .filter((one) => !led.has(one))
    .map((one) => viewOf(undefined, one, undefined, notes));
  return { members: [...members, ...elsewhere], notes };
}

function leadsTo({ status, endpoint }: Answers, member: Member): boolean {
  if (status !== undefined) return status.header?.memberId === member.ID;
  const address = (text: string): string => text.replace(/^\w+:\/\//, "").replace(/\/$/, "");
  return member.clientURLs.some((url) => address(url) === address(endpoint));
}

async function memberView(
  looker: Looker,
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
    const asked = await Promise.all(others.map((endpoint) => askAt(looker, endpoint, options)));
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
  // That a member does not answer at all is found by itself.
  if (found?.status !== undefined && found.scrapeFailure !== undefined) {
    notes.push({
      member: label,
      text: `${found.scrapeFailure}: its disk, clock and limits were not looked at`,
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
    clock: found?.scrape === undefined ? undefined : clockOf(found.scrape, metrics!),
    certificate: found?.certificate,
    peerCertificate,
  };
}

/** Everything that is asked of one endpoint, side by side. */
async function askAt(looker: Looker, endpoint: string, options: LookOptions): Promise<Answers> {
  const target = targetOf(endpoint, options.tls);
  const reason = (error: unknown): string => printable((error as Error).message);
  const [status, members, scrape, certificate] = await Promise.all([
    looker.status(endpoint).then(
      (answer) => ({ answer, failure: undefined }),
      (error) => ({ answer: undefined, failure: reason(error) }),
    ),
    looker.members(endpoint).catch(() => undefined),
    target === undefined ? undefined : scrapeAt(looker, endpoint, reason),
    target?.secure === true ? certificateAt(target.address, options) : undefined,
  ]);
  return {
    endpoint,
    status: status.answer,
    failure: status.failure,
    members,
    scrape: scrape?.answer,
    scrapeFailure: scrape?.failure,
    certificate,
  };
}

async function scrapeAt(
  looker: Looker,
  endpoint: string,
  reason: (error: unknown) => string,
): Promise<{ readonly answer?: HttpAnswer; readonly failure?: string }> {
  try {
    const answer = await looker.metrics(endpoint);
    return answer.status === 200
      ? { answer }
      : { failure: `GET /metrics is answered with ${answer.status}` };
  } catch (error) {
    return { failure: `its metrics cannot be had (${reason(error)})` };
  }
}

async function certificateAt(
  address: string,
  { tls, timeoutMs }: LookOptions,
): Promise<ShownCertificate | undefined> {
  if (address.startsWith("unix:")) return undefined;
  // Without an answer there is nothing to judge; that the member does not answer is found by
  // itself.
  return shownCertificate(address, tls, timeoutMs).catch(() => undefined);
}

/**
 * The member made its answer at some time between the request's leaving and the answer's coming.
 */
function clockOf(
  { dateMs, sentMs, receivedMs }: HttpAnswer,
  metrics: MetricsText,
): ClockOffset | undefined {
  const seconds = metrics.value("quorate_server_clock_seconds");
  if (seconds !== undefined)
    return { lowMs: seconds * 1000 - receivedMs, highMs: seconds * 1000 - sentMs };
  // The header is cut to whole seconds, and may be a second old already where a server keeps it.
  return dateMs === undefined
    ? undefined
    : { lowMs: dateMs - receivedMs, highMs: dateMs + 2000 - sentMs };
}
