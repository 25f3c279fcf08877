/**
 * What a request is about: its keys, and the fields that may be shown. Fields are shown by name
 * from one list, so that a password, a token or a value is never shown because it was forgotten.
 */
import {
  AuthRoleGrantPermissionRequest,
  AuthRoleRevokePermissionRequest,
  AuthService,
  type Compare,
  DeleteRangeRequest,
  KVService,
  type MethodDescriptor,
  PutRequest,
  RangeRequest,
  type RequestOp,
  services,
  TxnRequest,
  type WatchCreateRequest,
} from "@quorate/proto";
import { KeyPlaces } from "./key-places.ts";

/** Keys that a call reads or writes. */
export interface KeyAccess {
  readonly op: "get" | "put" | "delete" | "watch" | "compare" | "grant" | "revoke" | "use";
  readonly key: Uint8Array;
  /** Empty for one key; a zero byte: everything from the key on. */
  readonly end: Uint8Array;
  /** What is written; it is hashed before it is shown. */
  readonly value?: Uint8Array | undefined;
}

type Shown = string | number | boolean | readonly string[];

export interface Subject {
  readonly accesses: readonly KeyAccess[];
  /** Fields of the request that may be shown. */
  readonly fields: readonly (readonly [name: string, value: Shown])[];
}

const NO_FIELDS: Subject["fields"] = [];
const NOTHING: Subject = { accesses: [], fields: [] };
const NO_END = new Uint8Array(0);

/** Fields of requests that are shown as they are, whatever the request. */
const SHOWN_FIELDS = [
  "name",
  "user",
  "role",
  "ID",
  "TTL",
  "keys",
  "peerURLs",
  "isLearner",
  "memberID",
  "targetID",
  "action",
  "alarm",
  "version",
  "revision",
  "physical",
  "lease",
  "prevKv",
  "limit",
  "serializable",
  "keysOnly",
  "countOnly",
  "startRevision",
  "ignoreValue",
  "ignoreLease",
  "linearizable",
] as const;

type Message = Readonly<Record<string, unknown>>;

function shownFields(request: object): (readonly [string, Shown])[] {
  const message = request as Message;
  const fields: (readonly [string, Shown])[] = [];
  for (const name of SHOWN_FIELDS) {
    const value = message[name];
    if (typeof value === "bigint") {
      // Ids; zero is none.
      if (value !== 0n) fields.push([name, value.toString(16)]);
    } else if (typeof value === "string" || typeof value === "number") {
      if (value !== "" && value !== 0) fields.push([name, value]);
    } else if (value === true) fields.push([name, true]);
    else if (name === "peerURLs" && Array.isArray(value)) fields.push([name, value as string[]]);
  }
  return fields;
}

/** Reads the subject of one method's requests; the bytes are a request that was served. */
type ReadSubject = (request: Uint8Array) => Subject;

const readers = new Map<string, ReadSubject>([
  [KVService.methods.Range.path, (bytes) => ofRange(RangeRequest.decode(bytes))],
  [KVService.methods.RangeStream.path, (bytes) => ofRange(RangeRequest.decode(bytes))],
  [KVService.methods.Put.path, (bytes) => ofPut(PutRequest.decode(bytes))],
  [KVService.methods.DeleteRange.path, (bytes) => ofDelete(DeleteRangeRequest.decode(bytes))],
  [KVService.methods.Txn.path, (bytes) => ({ accesses: ofTxn(bytes), fields: [] })],
  [
    AuthService.methods.RoleGrantPermission.path,
    (bytes) => {
      const { name, perm } = AuthRoleGrantPermissionRequest.decode(bytes);
      const type = ["READ", "WRITE", "READWRITE"][perm?.permType ?? 0] ?? "";
      return {
        accesses: [{ op: "grant", key: perm?.key ?? NO_END, end: perm?.rangeEnd ?? NO_END }],
        fields: [
          ["role", name],
          ["permission", type],
        ],
      };
    },
  ],
  [
    AuthService.methods.RoleRevokePermission.path,
    (bytes) => {
      const { role, key, rangeEnd } = AuthRoleRevokePermissionRequest.decode(bytes);
      return { accesses: [{ op: "revoke", key, end: rangeEnd }], fields: [["role", role]] };
    },
  ],
]);

for (const service of services) {
  for (const method of Object.values(service.methods)) {
    if (!readers.has(method.path)) readers.set(method.path, plainReader(method));
  }
}

/** Locks and elections have a name that is a key; of all else the fields are enough. */
function plainReader({ requestType }: MethodDescriptor): ReadSubject {
  return (bytes) => {
    const message = requestType.decode(bytes) as Message;
    const { name } = message;
    return {
      accesses: name instanceof Uint8Array ? [{ op: "use", key: name, end: NO_END }] : [],
      fields: shownFields(message),
    };
  };
}

/** Requests whose first fields are a key and, but for a put, the end of a range. */
export const KEYS_FIRST: ReadonlyMap<string, KeyAccess["op"]> = new Map<string, KeyAccess["op"]>([
  [KVService.methods.Put.path, "put"],
  [KVService.methods.Range.path, "get"],
  [KVService.methods.RangeStream.path, "get"],
  [KVService.methods.DeleteRange.path, "delete"],
]);

/** The keys of a request, read without decoding the rest; undefined where that does not do. */
function keysFirst(op: KeyAccess["op"], request: Uint8Array): KeyAccess | undefined {
  const places = new KeyPlaces();
  if (!places.read(request, op !== "put")) return undefined;
  return { op, key: places.key(), end: places.rangeEnd() };
}

/**
 * The subject of a request; nothing for bytes that are no request of this method.
 * @param isDetailed whether fields and values are wanted of requests about keys as well
 */
export function subjectOf(path: string, request: Uint8Array, isDetailed: boolean): Subject {
  const op = isDetailed ? undefined : KEYS_FIRST.get(path);
  const access = op === undefined ? undefined : keysFirst(op, request);
  if (access !== undefined) return { accesses: [access], fields: NO_FIELDS };
  try {
    return readers.get(path)?.(request) ?? NOTHING;
  } catch {
    return NOTHING;
  }
}

/** The subject of a watch. */
export function subjectOfWatch(request: WatchCreateRequest): Subject {
  return {
    accesses: [{ op: "watch", key: request.key, end: request.rangeEnd }],
    fields: shownFields(request),
  };
}

function ofRange(request: RangeRequest): Subject {
  const { key, rangeEnd } = request;
  return {
    accesses: [{ op: "get", key, end: rangeEnd }],
    fields: shownFields(request),
  };
}

function ofPut(request: PutRequest): Subject {
  const { key, value, ignoreValue } = request;
  return {
    accesses: [{ op: "put", key, end: NO_END, value: ignoreValue ? undefined : value }],
    fields: shownFields(request),
  };
}

function ofDelete(request: DeleteRangeRequest): Subject {
  const { key, rangeEnd } = request;
  return {
    accesses: [{ op: "delete", key, end: rangeEnd }],
    fields: shownFields(request),
  };
}

function ofTxn(bytes: Uint8Array): KeyAccess[] {
  const accesses: KeyAccess[] = [];
  collectTxn(TxnRequest.decode(bytes), accesses);
  return accesses;
}

function collectTxn({ compare, success, failure }: TxnRequest, into: KeyAccess[]): void {
  for (const one of compare) into.push(ofCompare(one));
  for (const { request } of [...success, ...failure]) collectOp(request, into);
}

function ofCompare({ key, rangeEnd }: Compare): KeyAccess {
  return { op: "compare", key, end: rangeEnd };
}

/** A request is decoded no deeper than a service takes it, so the recursion is bounded. */
function collectOp(request: RequestOp["request"], into: KeyAccess[]): void {
  if (request?.case === "requestTxn") collectTxn(request.value, into);
  else if (request?.case === "requestRange") into.push(...ofRange(request.value).accesses);
  else if (request?.case === "requestPut") into.push(...ofPut(request.value).accesses);
  else if (request?.case === "requestDeleteRange") into.push(...ofDelete(request.value).accesses);
}
