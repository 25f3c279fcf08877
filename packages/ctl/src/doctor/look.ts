/** Looks at every member of a cluster: its status over gRPC, its metrics and its clock over HTTP, its certificates in TLS handshakes. */
import type { Client } from "@quorate/client";
import { type ClientTls, type HttpAnswer, httpGet, type ShownCertificate, shownCertificate, type Target } from "../observe/http.ts";
import { MetricsText } from "../observe/metrics-text.ts";
import { findPlaces, firstAnswer, labelOf, type Place, targetOf } from "../observe/places.ts";
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

/** Never rejects for what is wrong with members: that is what was looked for. */
export async function look(client: Client, options: LookOptions): Promise<Look> {
  const notes: Note[] = [];
  const { places, listFailure } = await findPlaces(client, options.endpoints);
  if (listFailure !== undefined) notes.push({ member: "cluster", text: `the list of members could not be had: ${listFailure}` });
  const members = await Promise.all(places.map((place) => lookAt(client, place, options, notes)));
  return { members, notes };
}

async function lookAt(client: Client, { member, endpoints, status }: Place, options: LookOptions, notes: Note[]): Promise<MemberView> {
  const label = labelOf({ member, endpoints });
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
