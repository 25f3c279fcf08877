/** Where the members of a cluster are to be looked at, from the endpoints that are known. */
import { type Client, parseEndpoint } from "@quorate/client";
import { idToHex, type Member, type StatusResponse } from "@quorate/proto";
import type { ClientTls, Target } from "./http.ts";

/** A member to look at: as the cluster lists it, with the endpoints that may lead to it, or an endpoint alone. */
export interface Place {
  readonly member: Member | undefined;
  readonly endpoints: readonly string[];
  /** What the endpoint has said already. */
  readonly status: Status | undefined;
}

/** What an endpoint has said. */
export type Status =
  | { readonly endpoint: string; readonly answer: StatusResponse }
  | { readonly endpoint: string; readonly failure: string };

/** The status that an endpoint gives, or why it gives none. */
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
  return error.cause instanceof Error ? error.cause.message : error.message;
}

/**
 * The members as one of those at `endpoints` knows them, whether or not a quorum is there, then endpoints that led nowhere. Rejects for
 * nothing that is wrong with members; why their list could not be had is given.
 */
export async function findPlaces(
  client: Client,
  endpoints: readonly string[],
): Promise<{ places: Place[]; listFailure: string | undefined }> {
  const asked = await Promise.all(endpoints.map((endpoint) => statusAt(client, endpoint)));
  let members: readonly Member[] = [];
  let listFailure: string | undefined;
  if (asked.some((one) => "answer" in one)) {
    try {
      members = (await client.memberList({ linearizable: false })).members;
    } catch (error) {
      listFailure = whyNot(error);
    }
  }
  return { places: placesOf(asked, members), listFailure };
}

/** A member's name; its id and peer URLs before it has one; the endpoint where no member is known. */
export function labelOf({ member, endpoints }: Pick<Place, "member" | "endpoints">): string {
  return member === undefined ? (endpoints[0] ?? "?") : member.name || `${idToHex(member.ID)} (${member.peerURLs.join(",")})`;
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

/** The status at the first endpoint that gives one, else the last failure. */
export async function firstAnswer(client: Client, endpoints: readonly string[]): Promise<Status | undefined> {
  let last: Status | undefined;
  for (const endpoint of endpoints) {
    last = await statusAt(client, endpoint);
    if ("answer" in last) return last;
  }
  return last;
}

/** Where plain HTTP is to be spoken with an endpoint; undefined for one that is none. */
export function targetOf(endpoint: string, tls: ClientTls | undefined): Target | undefined {
  try {
    return parseEndpoint(endpoint, tls !== undefined && tls.plainByDefault !== true);
  } catch {
    return undefined;
  }
}
