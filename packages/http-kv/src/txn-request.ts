/**
 * A transaction in plain JSON.
 *
 *     {"compare": [{"key":"a","mod_revision":7}, {"key":"b","exists":false}],
 *      "then":    [{"put":"a","value":"1"}, {"delete":"c/","prefix":true}],
 *      "else":    [{"get":"a"}]}
 *
 * A list alone is its "then". Bytes are a text, or {"base64":"..."}, as in lists.
 */
import {
  Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  defined,
  EMPTY,
  endOfPrefix,
  errorOf,
  fromBase64,
  fromUtf8,
  PutRequest,
  RangeRequest,
  type RequestOp,
  TxnRequest,
} from "@quorate/proto";
import { prefixStart, shown } from "./key-path.ts";
import {
  JsonNumber,
  type JsonObject,
  type JsonValue,
  PlainJsonError,
  parsePlainJson,
} from "./plain-json.ts";
import { Problem } from "./problems.ts";
import { leaseIdOf } from "./write.ts";

const RESULTS: ReadonlyMap<string, Compare_CompareResult> = new Map([
  ["=", Compare_CompareResult.EQUAL],
  ["!=", Compare_CompareResult.NOT_EQUAL],
  ["<", Compare_CompareResult.LESS],
  [">", Compare_CompareResult.GREATER],
]);

/**
 * The request of a body.
 * @param maxOps the most operations, and comparisons
 * @throws Problem bad-body; EtcdError TooManyOps
 */
export function txnOfBody(body: Uint8Array, maxOps: number): TxnRequest {
  let document: JsonValue;
  try {
    document = parsePlainJson(body);
  } catch (error) {
    if (!(error instanceof PlainJsonError)) throw error;
    throw new Problem("bad-body", `the body is no JSON: ${error.message}`);
  }
  if (Array.isArray(document))
    return TxnRequest.create({ success: opsOf(document, "then", maxOps) });
  const fields = new Fields(document, "the body", ["compare", "then", "else"]);
  const listOf = (name: string): readonly JsonValue[] => {
    const value = fields.take(name);
    if (value === undefined) return [];
    if (Array.isArray(value)) return value;
    throw new Problem("bad-body", `"${name}" is not a list`, "write [...]");
  };
  const compares = listOf("compare");
  if (compares.length > maxOps) throw errorOf("TooManyOps");
  return TxnRequest.create({
    compare: compares.map((value, i) => compareOf(value, `compare[${i}]`)),
    success: opsOf(listOf("then"), "then", maxOps),
    failure: opsOf(listOf("else"), "else", maxOps),
  });
}

function opsOf(values: readonly JsonValue[], name: string, maxOps: number): RequestOp[] {
  if (values.length > maxOps) throw errorOf("TooManyOps");
  return values.map((value, i) => opOf(value, `${name}[${i}]`));
}

/** The members of an object, of which each must be known. */
class Fields {
  readonly #object: JsonObject;
  readonly #place: string;

  constructor(value: JsonValue, place: string, known: readonly string[]) {
    if (!(value instanceof Map))
      throw new Problem("bad-body", `${place} is not an object`, "write {...}");
    this.#object = value as JsonObject;
    this.#place = place;
    for (const name of this.#object.keys())
      if (!known.includes(name))
        throw new Problem(
          "bad-body",
          `${place} has the member ${shown(name)}, which is not known`,
          `there are: ${known.join(", ")}`,
        );
  }

  /** Names of the list that are there. */
  present(names: readonly string[]): string[] {
    return names.filter((name) => this.#object.has(name));
  }

  take(name: string): JsonValue | undefined {
    return this.#object.get(name);
  }

  flag(name: string): boolean {
    const value = this.take(name);
    if (value === undefined || typeof value === "boolean") return value ?? false;
    throw this.#wrong(name, "write true or false");
  }

  /** A whole number; undefined where it is not there. */
  integer(name: string): number | undefined {
    const value = this.take(name);
    if (value === undefined) return undefined;
    const number = value instanceof JsonNumber ? Number(value.text) : Number.NaN;
    if (Number.isSafeInteger(number) && number >= 0) return number;
    throw this.#wrong(name, `write a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`);
  }

  /** The id of a lease, a number or a text; 0 where it is not there. */
  lease(name: string): bigint {
    const value = this.take(name);
    if (value === undefined) return 0n;
    const text = value instanceof JsonNumber ? value.text : value;
    if (text === "0") return 0n;
    const id = typeof text === "string" ? leaseIdOf(text) : undefined;
    if (id !== undefined) return id;
    throw this.#wrong(name, "write the id as a number, or as a text in decimal or 0x digits");
  }

  /** Bytes that must be there. */
  bytes(name: string): Uint8Array {
    const value = this.take(name);
    if (typeof value === "string") return fromUtf8(value);
    if (value instanceof Map && value.size === 1) {
      const base64 = value.get("base64") as JsonValue | undefined;
      const bytes = typeof base64 === "string" ? fromBase64(base64) : undefined;
      if (bytes !== undefined) return bytes;
    }
    throw this.#wrong(name, 'write a text, or {"base64":"..."}');
  }

  /** One of the texts; undefined where it is not there. */
  oneOf<T>(name: string, values: ReadonlyMap<string, T>): T | undefined {
    const value = this.take(name);
    if (value === undefined) return undefined;
    const found = typeof value === "string" ? values.get(value) : undefined;
    if (found !== undefined) return found;
    throw this.#wrong(name, `write one of ${[...values.keys()].join(" ")}`);
  }

  #wrong(name: string, right: string): Problem {
    const what = this.#object.has(name) ? "is not what it must be" : "is missing";
    return new Problem("bad-body", `${this.#place}.${name} ${what}`, right);
  }
}

/** The range of a key, or of the keys that begin with it. */
function rangeOf(key: Uint8Array, isPrefix: boolean): { key: Uint8Array; rangeEnd: Uint8Array } {
  return isPrefix
    ? { key: prefixStart(key), rangeEnd: endOfPrefix(key) }
    : { key, rangeEnd: EMPTY };
}

const TARGETS = ["exists", "value", "mod_revision", "create_revision", "version", "lease"];

function compareOf(value: JsonValue, place: string): Compare {
  const fields = new Fields(value, place, ["key", "prefix", "is", ...TARGETS]);
  const targets = fields.present(TARGETS);
  const [target] = targets;
  if (target === undefined || targets.length !== 1)
    throw new Problem(
      "bad-body",
      `${place} compares ${targets.length} properties`,
      `write one of ${TARGETS.join(", ")}`,
    );
  const range = rangeOf(fields.bytes("key"), fields.flag("prefix"));
  const { CREATE } = Compare_CompareTarget;
  const { EQUAL, GREATER } = Compare_CompareResult;
  if (target === "exists") {
    if (fields.take("is") !== undefined)
      throw new Problem("bad-body", `${place} has "exists" and "is"`, "write one of them");
    const result = fields.flag("exists") ? GREATER : EQUAL;
    const targetUnion = { case: "createRevision", value: 0 } as const;
    return Compare.create({ ...range, target: CREATE, result, targetUnion });
  }
  const result = fields.oneOf("is", RESULTS) ?? EQUAL;
  return Compare.create({ ...range, result, ...targetOf(target, fields) });
}

function targetOf(target: string, fields: Fields): Pick<Compare, "target" | "targetUnion"> {
  const { VALUE, LEASE, MOD, CREATE, VERSION } = Compare_CompareTarget;
  switch (target) {
    case "value":
      return { target: VALUE, targetUnion: { case: "value", value: fields.bytes("value") } };
    case "lease":
      return { target: LEASE, targetUnion: { case: "lease", value: fields.lease("lease") } };
    case "mod_revision": {
      const value = defined(fields.integer("mod_revision"), "the revision");
      return { target: MOD, targetUnion: { case: "modRevision", value } };
    }
    case "create_revision": {
      const value = defined(fields.integer("create_revision"), "the revision");
      return { target: CREATE, targetUnion: { case: "createRevision", value } };
    }
    default: {
      const value = defined(fields.integer("version"), "the version");
      return { target: VERSION, targetUnion: { case: "version", value } };
    }
  }
}

const OPS = ["put", "get", "delete"];

function opOf(value: JsonValue, place: string): RequestOp {
  const all = new Fields(value, place, [
    ...OPS,
    "value",
    "lease",
    "previous",
    "prefix",
    "limit",
    "keys",
    "count",
    "rev",
  ]);
  const kinds = all.present(OPS);
  if (kinds.length !== 1)
    throw new Problem(
      "bad-body",
      `${place} is ${kinds.length} operations`,
      'write {"put":KEY,...}, {"get":KEY} or {"delete":KEY}',
    );
  if (kinds[0] === "put") return putOf(new Fields(value, place, PUT_FIELDS));
  if (kinds[0] === "get") return getOf(new Fields(value, place, GET_FIELDS));
  return deleteOf(new Fields(value, place, DELETE_FIELDS));
}

const PUT_FIELDS = ["put", "value", "lease", "previous"];
const GET_FIELDS = ["get", "prefix", "limit", "keys", "count", "rev"];
const DELETE_FIELDS = ["delete", "prefix", "previous"];

function putOf(fields: Fields): RequestOp {
  const isKept = fields.take("lease") === "keep";
  const value = PutRequest.create({
    key: fields.bytes("put"),
    value: fields.bytes("value"),
    lease: isKept ? 0n : fields.lease("lease"),
    ignoreLease: isKept,
    prevKv: fields.flag("previous"),
  });
  return { request: { case: "requestPut", value } };
}

function getOf(fields: Fields): RequestOp {
  const value = RangeRequest.create({
    ...rangeOf(fields.bytes("get"), fields.flag("prefix")),
    limit: fields.integer("limit") ?? 0,
    revision: fields.integer("rev") ?? 0,
    keysOnly: fields.flag("keys"),
    countOnly: fields.flag("count"),
  });
  return { request: { case: "requestRange", value } };
}

function deleteOf(fields: Fields): RequestOp {
  const value = DeleteRangeRequest.create({
    ...rangeOf(fields.bytes("delete"), fields.flag("prefix")),
    prevKv: fields.flag("previous"),
  });
  return { request: { case: "requestDeleteRange", value } };
}
