/**
 * A member of the cluster, and its two JSON forms: the one etcd stores and puts into configuration
 * changes ({"id":..,"peerURLs":[..],"isLearner":true,"name":"..","clientURLs":[..]}), with ids as
 * numbers of 64 bits, which JSON.parse would round.
 */
import { fromUtf8, toUtf8 } from "@quorate/proto";

/** Digits of the largest number of 64 bits. */
const MAX_ID_DIGITS = 20;

export interface Member {
  readonly id: bigint;
  /** Empty until the member has published itself. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  /** Empty until the member has published itself. */
  readonly clientUrls: readonly string[];
  readonly isLearner: boolean;
}

/** The context of a configuration change that adds or promotes a member. */
export interface ChangeContext {
  readonly member: Member;
  readonly isPromote: boolean;
}

function fieldsOf(member: Member): string {
  const { id, peerUrls, isLearner, name, clientUrls } = member;
  return (
    `"id":${id},"peerURLs":${JSON.stringify(peerUrls)}` +
    (isLearner ? ',"isLearner":true' : "") +
    (name === "" ? "" : `,"name":${JSON.stringify(name)}`) +
    (clientUrls.length === 0 ? "" : `,"clientURLs":${JSON.stringify(clientUrls)}`)
  );
}

export function encodeMember(member: Member): Uint8Array {
  return fromUtf8(`{${fieldsOf(member)}}`);
}

export function encodeChangeContext(context: ChangeContext): Uint8Array {
  return fromUtf8(`{${fieldsOf(context.member)},"isPromote":${context.isPromote}}`);
}

function strings(value: unknown, field: string): string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.some((one) => typeof one !== "string"))
    throw new SyntaxError(`"${field}" is not a list of texts`);
  return value as string[];
}

/**
 * Reads a JSON list of members in the form that members send to each other. Throws SyntaxError for
 * anything else.
 */
export function decodeMembers(bytes: Uint8Array): Member[] {
  // Reads ids as texts, because JSON.parse would round them. A quote inside a text follows a
  // backslash.
  const parsed: unknown = JSON.parse(
    toUtf8(bytes).replace(/(^|[^\\])"id"\s*:\s*(\d+)/g, '$1"id":"$2"'),
  );
  if (!Array.isArray(parsed)) throw new SyntaxError("not a JSON list");
  return parsed.map((one: unknown) => {
    if (typeof one !== "object" || one === null)
      throw new SyntaxError("not a list of JSON objects");
    const { id } = one as { id?: unknown };
    if (typeof id !== "string" || id.length > MAX_ID_DIGITS)
      throw new SyntaxError('a member without an "id"');
    return memberOf(one as Record<string, unknown>, BigInt.asUintN(64, BigInt(id)));
  });
}

function memberOf(fields: Record<string, unknown>, id: bigint): Member {
  return {
    id,
    name: typeof fields["name"] === "string" ? fields["name"] : "",
    peerUrls: strings(fields["peerURLs"], "peerURLs"),
    clientUrls: strings(fields["clientURLs"], "clientURLs"),
    isLearner: fields["isLearner"] === true,
  };
}

/** Reads either form. Throws SyntaxError for anything else. */
export function decodeChangeContext(bytes: Uint8Array): ChangeContext {
  const text = toUtf8(bytes);
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed !== "object" || parsed === null) throw new SyntaxError("not a JSON object");
  const fields = parsed as Record<string, unknown>;
  // The id is parsed from the text: as a number it would lose its low bits.
  const id = /"id"\s*:\s*(\d+)/.exec(text)?.[1];
  if (id !== undefined && id.length > MAX_ID_DIGITS)
    throw new SyntaxError(`an "id" of ${id.length} digits`);
  return {
    member: memberOf(fields, id === undefined ? 0n : BigInt.asUintN(64, BigInt(id))),
    isPromote: fields["isPromote"] === true,
  };
}

export function decodeMember(bytes: Uint8Array): Member {
  return decodeChangeContext(bytes).member;
}
