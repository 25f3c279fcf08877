/** /v2/members and /v2/machines (etcd 3.4: etcdserver/api/v2http/client.go, membersHandler). */
import { type HttpExchangeHandler, type HttpResponse, plainError } from "@quorate/host";
import type { Member } from "@quorate/member";
import {
  ClusterService,
  CodedError,
  defined,
  fromUtf8,
  idToHex,
  toLatin1,
  toUtf8,
  type Member as WireMember,
} from "@quorate/proto";
import { type CallServices, HttpCaller } from "./calls.ts";
import { isRefusal, messageError, served, type V2Exchange } from "./http.ts";
import { goString } from "./json.ts";

const PREFIX = "/v2/members";
/** Bytes of a body: 64 URLs of a member. */
export const MAX_MEMBER_BODY_BYTES: number = 128 << 10;

export interface MembersDeps {
  readonly member: Member;
  readonly to: CallServices;
}

/** A request that is answered with an error. */
class Refused extends CodedError<"Refused"> {
  readonly response: HttpResponse;

  constructor(response: HttpResponse) {
    super("Refused", "Refused", `HTTP ${response.status}`);
    this.response = response;
  }
}

/** Serves /v2/members. */
export function membersHandler(deps: MembersDeps): HttpExchangeHandler {
  return served(["GET", "POST", "DELETE", "PUT"], MAX_MEMBER_BODY_BYTES, (it) =>
    answer(deps, it, (caller) => membersResponse(deps, caller, it)),
  );
}

/** Serves /v2/machines: the members' client URLs. */
export function machinesHandler(deps: MembersDeps): HttpExchangeHandler {
  return served(["GET", "HEAD"], 0, (it) =>
    answer(deps, it, async (caller) => {
      const members = await listed(caller);
      const urls = members.flatMap(({ clientURLs }) => clientURLs).sort();
      const headers = { "content-type": "text/plain; charset=utf-8" };
      return { status: 200, headers, body: urls.join(", ") };
    }),
  );
}

/** Answers for the user that a request proves; a refusal is v2's 401. */
export function answer(
  { to }: Pick<MembersDeps, "to">,
  { exchange, listen }: V2Exchange,
  respond: (caller: HttpCaller) => Promise<HttpResponse>,
): void {
  const caller = new HttpCaller(to, exchange);
  listen({ aborted: () => caller.cancel() });
  caller
    .proved(() => respond(caller))
    .then(
      (response) => exchange.respond(response),
      (error: unknown) => exchange.respond(errorResponse(error)),
    );
}

function errorResponse(error: unknown): HttpResponse {
  if (error instanceof Refused) return error.response;
  if (isRefusal(error)) return messageError(401, "Insufficient credentials");
  return messageError(500, "Internal Server Error");
}

async function membersResponse(
  { member }: MembersDeps,
  caller: HttpCaller,
  { exchange, path, body }: V2Exchange,
): Promise<HttpResponse> {
  const { method, headers: fields } = exchange.head;
  const rest = path.slice(PREFIX.length).replace(/^\//, "");
  const headers = { "x-etcd-cluster-id": idToHex(member.clusterId) };
  const json = { ...headers, "content-type": "application/json" };
  if (method === "GET") return read(member, caller, rest, json);
  if (method === "POST") {
    const peerURLs = urlsOf(fields.get("content-type") ?? "", body);
    const added = await changed(member, rest, () =>
      caller.call(ClusterService.methods.MemberAdd, { peerURLs, isLearner: false }),
    );
    return {
      status: 201,
      headers: json,
      body: `${memberJson(defined(added.member, "the added member"))}\n`,
    };
  }
  if (rest === "") throw new Refused(plainError(405, "Method Not Allowed"));
  const ID = idOf(rest);
  if (method === "PUT") {
    const peerURLs = urlsOf(fields.get("content-type") ?? "", body);
    await changed(member, idToHex(ID), () =>
      caller.call(ClusterService.methods.MemberUpdate, { ID, peerURLs }),
    );
  } else {
    await changed(member, idToHex(ID), () =>
      caller.call(ClusterService.methods.MemberRemove, { ID }),
    );
  }
  return { status: 204, headers, body: "" };
}

async function listed(caller: HttpCaller): Promise<readonly WireMember[]> {
  const { members } = await caller.call(ClusterService.methods.MemberList, {
    linearizable: false,
  });
  return members;
}

async function read(
  member: Member,
  caller: HttpCaller,
  rest: string,
  headers: Readonly<Record<string, string>>,
): Promise<HttpResponse> {
  const members = await listed(caller);
  if (rest === "") {
    const body = `{"members":[${members.map(memberJson).join(",")}]}\n`;
    return { status: 200, headers, body };
  }
  if (rest !== "leader") throw new Refused(messageError(404, "Not found", headers));
  const leader = members.find(({ ID }) => ID === member.leader);
  if (leader === undefined) throw new Refused(messageError(503, "During election", headers));
  return { status: 200, headers, body: `${memberJson(leader)}\n` };
}

function memberJson({ ID, name, peerURLs, clientURLs }: WireMember): string {
  const list = (urls: readonly string[]) => `[${urls.map(goText).join(",")}]`;
  const urls = `"peerURLs":${list(peerURLs)},"clientURLs":${list(clientURLs)}`;
  return `{"id":"${idToHex(ID)}","name":${goText(name)},${urls}}`;
}

function goText(text: string): string {
  return goString(toLatin1(fromUtf8(text)));
}

function idOf(text: string): bigint {
  if (!/^[0-9a-fA-F]{1,16}$/.test(text))
    throw new Refused(messageError(404, `No such member: ${text}`));
  return BigInt(`0x${text}`);
}

function urlsOf(contentType: string, body: Uint8Array): string[] {
  const [type = ""] = contentType
    .toLowerCase()
    .split(";", 1)
    .map((one) => one.trim());
  if (type !== "application/json")
    throw new Refused(messageError(415, `Bad Content-Type ${type}, accept application/json`));
  let value: unknown;
  try {
    value = JSON.parse(toUtf8(body));
  } catch (error) {
    throw new Refused(messageError(400, (error as Error).message));
  }
  const urls = (value as { peerURLs?: unknown } | null)?.peerURLs;
  const isList = Array.isArray(urls) && urls.every((url) => typeof url === "string");
  if (!isList || urls.length === 0) throw new Refused(messageError(400, "no valid URLs given"));
  return urls;
}

/** Runs a change of the membership; its errors have v2's texts. */
async function changed<T>(member: Member, id: string, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    const { message } = error as Error;
    if (/Peer URLs already exists/.test(message))
      throw new Refused(messageError(409, "membership: peerURL exists"));
    if (/member ID already exist/.test(message))
      throw new Refused(messageError(409, "membership: ID exists"));
    if (/given member URLs are invalid/.test(message))
      throw new Refused(messageError(400, "no valid URLs given"));
    if (!/member not found/.test(message)) throw error;
    if (member.store.membership.isRemoved(BigInt(`0x${id}`)))
      throw new Refused(messageError(410, `Member permanently removed: ${id}`));
    throw new Refused(messageError(404, `No such member: ${id}`));
  }
}
