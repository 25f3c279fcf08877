/**
 * Sends a list in slices: the JSON of each object goes out as it is stored, and the event loop is
 * free between two slices, however many objects there are.
 *
 *     {"kind":"ConfigMapList","apiVersion":"v1","metadata":{...},"items":[ITEM,ITEM,...]}
 */
import { Pauses } from "@quorate/host";
import type { RestList, ServedResource, StoredObject } from "@quorate/kube-storage";
import { goJson, metaProtobuf, writeYaml } from "@quorate/kube-storage";
import { defined, fromUtf8, putVarint, varintSize } from "@quorate/proto";
import { MAX_AUDIT_OBJECT_CHARS } from "../audit/request-audit.ts";
import { withoutManagedFields } from "../audit/without-managed-fields.ts";
import { BodySink } from "./body-sink.ts";
import { type Call, joined } from "./call.ts";
import {
  includeObjectOf,
  mediaTypeOf,
  type Negotiated,
  partialMetadata,
  tableOf,
  tableRow,
} from "./negotiation.ts";
import { jsonText, messageOf, type SendDeps, versionOf } from "./send-object.ts";
import { notConvertible } from "./statuses.ts";

/** The clock is read once for so many objects. */
const OBJECTS_PER_LOOK = 16;

/** The list in the negotiated form. Rejects with ApiError while nothing has been sent. */
export async function sendList(
  call: Call,
  deps: SendDeps,
  resource: ServedResource,
  form: Negotiated,
  list: RestList,
): Promise<void> {
  if (form.target?.kind === "PartialObjectMetadata")
    throw notConvertible(
      `you requested PartialObjectMetadata, but the requested object is a list (${listKindOf(resource)})`,
    );
  if (call.audit?.wants("RequestResponse"))
    call.audit.responseText(await auditedList(call, deps, resource, form, list));
  const sink = new BodySink(call, 200, mediaTypeOf(form.encoding), deps.newCompressor);
  try {
    if (form.encoding === "protobuf") await protobufList(sink, deps, resource, form, list);
    else await textList(sink, deps, textFormOf(call, deps, resource, form, list), list.items);
    if (!sink.isLost) await sink.end();
  } catch (error) {
    sink.abort();
    throw error;
  }
}

function listKindOf({ kind, listKind }: ServedResource): string {
  return listKind ?? `${kind.kind}List`;
}

/** How a list reads as text. */
interface TextForm {
  readonly head: string;
  readonly separator: string;
  readonly tail: string;
  item(object: StoredObject): Uint8Array | Promise<Uint8Array>;
}

/** metav1.ListMeta. Only lists of whole objects say of which shards they are. */
function listMeta(list: RestList, target: Negotiated["target"]) {
  const { resourceVersion, continueToken, remainingItemCount, shardSelector } = list;
  return {
    ...(resourceVersion === "" ? {} : { resourceVersion }),
    ...(continueToken === "" ? {} : { continue: continueToken }),
    ...(remainingItemCount === undefined ? {} : { remainingItemCount }),
    ...(shardSelector === undefined || target !== undefined
      ? {}
      : { shardInfo: { selector: shardSelector } }),
  };
}

/** The head of the list and the value of an item, for the transformation. */
function partsOf(
  call: Call,
  { clock }: SendDeps,
  resource: ServedResource,
  { target }: Negotiated,
  list: RestList,
) {
  const metadata = listMeta(list, target);
  if (target === undefined) {
    const kind = listKindOf(resource);
    const head = { kind, apiVersion: versionOf(resource), metadata };
    return { head, field: "items", value: undefined };
  }
  if (target.kind === "Table") {
    const include = includeObjectOf(call.query.first("includeObject"));
    const [nowMs, table] = [clock.wallMs(), defined(resource.table, "the table")];
    const { rows: _, ...head } = tableOf(target, metadata, table.columns, []);
    const value = (one: StoredObject) => tableRow(one.object(), table, target, include, nowMs);
    return { head, field: "rows", value };
  }
  const apiVersion = `${target.group}/${target.version}`;
  const head = { kind: "PartialObjectMetadataList", apiVersion, metadata };
  return {
    head,
    field: "items",
    value: (one: StoredObject) => partialMetadata(one.object(), target),
  };
}

function textFormOf(
  call: Call,
  deps: SendDeps,
  resource: ServedResource,
  form: Negotiated,
  list: RestList,
): TextForm {
  const { head, field, value } = partsOf(call, deps, resource, form, list);
  const shown = value ?? ((one: StoredObject) => one.object());
  if (form.encoding === "yaml") {
    const item = async (one: StoredObject) => fromUtf8(await writeYaml([shown(one)]));
    const isEmpty = list.items.length === 0;
    const top = jsonText(head, false).trimEnd();
    // Flow style for the head: a YAML document may hold JSON.
    const fields = Object.entries(JSON.parse(top) as object);
    const lines = fields.map(([name, it]) => `${name}: ${JSON.stringify(it)}\n`).join("");
    return { head: `${lines}${field}:${isEmpty ? " []" : ""}\n`, separator: "", tail: "", item };
  }
  if (form.pretty) {
    const text = JSON.stringify(head, undefined, 2).slice(0, -2);
    const item = (one: StoredObject) =>
      fromUtf8(`\n    ${JSON.stringify(shown(one), undefined, 2).replaceAll("\n", "\n    ")}`);
    const tail = list.items.length === 0 ? "]\n}\n" : "\n  ]\n}\n";
    return { head: `${text},\n  "${field}": [`, separator: ",", tail, item };
  }
  const text = `${JSON.stringify(head).slice(0, -1)},"${field}":[`;
  const item =
    value === undefined
      ? (one: StoredObject) => one.json()
      : (one: StoredObject) => fromUtf8(JSON.stringify(value(one)));
  return { head: text, separator: ",", tail: "]}\n", item };
}

/** The list's JSON for the audit log; undefined where it is too long for an event. */
async function auditedList(
  call: Call,
  deps: SendDeps,
  resource: ServedResource,
  { target }: Negotiated,
  list: RestList,
): Promise<string | undefined> {
  const omits = defined(call.audit, "the audit").omitsManagedFields;
  const json: Negotiated = { target, encoding: "json", pretty: false };
  const { head, field, value } = partsOf(call, deps, resource, json, list);
  let text = `${goJson(head).slice(0, -1)},"${field}":[`;
  const pauses = new Pauses(deps.clock.turns);
  for (const [at, stored] of list.items.entries()) {
    const one = value === undefined ? stored.object() : value(stored);
    const shown = omits ? withoutManagedFields(one) : one;
    text += `${at === 0 ? "" : ","}${goJson(shown)}`;
    if (text.length > MAX_AUDIT_OBJECT_CHARS) return undefined;
    await pauses.next();
  }
  return `${text}]}`;
}

async function textList(
  sink: BodySink,
  { clock }: SendDeps,
  form: TextForm,
  items: readonly StoredObject[],
): Promise<void> {
  const separator = fromUtf8(form.separator);
  sink.add(fromUtf8(form.head));
  const pauses = new Pauses(clock.turns);
  for (const [i, item] of items.entries()) {
    if (i > 0 && separator.length > 0) sink.add(separator);
    const piece = form.item(item);
    sink.add(piece instanceof Promise ? await piece : piece);
    if (sink.isFull) await sink.flush();
    if (i % OBJECTS_PER_LOOK === 0) await pauses.next();
    if (sink.isLost) return;
  }
  sink.add(fromUtf8(form.tail));
}

/** A field of a message that has its length before it. */
function lengthDelimited(field: number, bytes: Uint8Array): Uint8Array {
  const framed = new Uint8Array(1 + varintSize(bytes.length) + bytes.length);
  framed[0] = (field << 3) | 2;
  framed.set(bytes, putVarint(framed, 1, bytes.length));
  return framed;
}

/** {1: ListMeta, 2: repeated item}; the envelope has the length, so all is encoded first. */
async function protobufList(
  sink: BodySink,
  { clock }: SendDeps,
  resource: ServedResource,
  { target }: Negotiated,
  list: RestList,
): Promise<void> {
  const meta = lengthDelimited(1, metaProtobuf.encode("ListMeta", listMeta(list, target)));
  const pieces = [meta];
  let sizeBytes = meta.length;
  const pauses = new Pauses(clock.turns);
  for (const stored of list.items) {
    const object = stored.object();
    const value = target === undefined ? object : partialMetadata(object, target);
    const piece = lengthDelimited(2, messageOf(value, resource));
    pieces.push(piece);
    sizeBytes += piece.length;
    if (pieces.length % OBJECTS_PER_LOOK === 0) await pauses.next();
    if (sink.isLost) return;
  }
  const kind = target?.kind ?? listKindOf(resource);
  const apiVersion = target ? `${target.group}/${target.version}` : versionOf(resource);
  sink.add(metaProtobuf.wrap(apiVersion, kind, joined(pieces, sizeBytes)));
}
