/**
 * Which form a response has, by the Accept header (apiserver:
 * pkg/endpoints/handlers/negotiation/negotiate.go; RFC 9110 section 12.5.1), and objects in the
 * other forms: rows of a Table, and metadata alone (handlers/response.go).
 *
 *     application/json;as=Table;v=v1;g=meta.k8s.io,application/json
 *     application/vnd.kubernetes.protobuf,application/json;pretty=1
 */
import {
  badRequest,
  type KubeObject,
  notAcceptable,
  type ServedResource,
  type TableColumn,
  type TableConvertor,
  unsupportedMediaType,
} from "@quorate/kube-storage";

const JSON_TYPE = "application/json";
const YAML_TYPE = "application/yaml";
const PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf";

export type Encoding = "json" | "yaml" | "protobuf";
/** At least one; the first is the default. */
export type Encodings = readonly [Encoding, ...Encoding[]];

const TYPE_OF: Readonly<Record<Encoding, string>> = {
  json: JSON_TYPE,
  yaml: YAML_TYPE,
  protobuf: PROTOBUF_TYPE,
};

/** The media type of an encoding. */
export function mediaTypeOf(encoding: Encoding): string {
  return TYPE_OF[encoding];
}

/** The kind that the client wants instead of the object, such as Table of meta.k8s.io/v1. */
export interface MediaTarget {
  readonly kind: string;
  readonly group: string;
  readonly version: string;
}

export interface Negotiated {
  readonly encoding: Encoding;
  readonly target: MediaTarget | undefined;
  readonly pretty: boolean;
}

/** What an endpoint can send. */
export interface Offer {
  readonly encodings: Encodings;
  /** Whether the transformation is possible in the encoding. */
  allows(target: MediaTarget, encoding: Encoding): boolean;
}

/** Clauses of an Accept header beyond this many are ignored. */
const MAX_CLAUSES = 64;

interface Clause {
  readonly type: string;
  readonly quality: number;
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * The best of what the client accepts and the endpoint offers. Throws ApiError 406.
 * @param accept the header; undefined for none
 */
export function negotiate(accept: string | undefined, offer: Offer): Negotiated {
  if (accept === undefined || accept === "")
    return { encoding: offer.encodings[0], target: undefined, pretty: false };
  for (const clause of clausesOf(accept)) {
    for (const encoding of offer.encodings) {
      if (!matches(clause.type, TYPE_OF[encoding])) continue;
      const negotiated = optionsOf(clause, encoding, offer);
      if (negotiated !== undefined) return negotiated;
    }
  }
  throw notAcceptable(offer.encodings.map(mediaTypeOf));
}

function optionsOf(clause: Clause, encoding: Encoding, offer: Offer): Negotiated | undefined {
  const { parameters } = clause;
  const [kind, group, version] = ["as", "g", "v"].map((name) => parameters.get(name));
  const pretty = parameters.get("pretty") === "1";
  const stream = parameters.get("stream");
  if (stream !== undefined && stream !== "" && stream !== "watch") return undefined;
  if (kind === undefined && group === undefined && version === undefined)
    return { encoding, target: undefined, pretty };
  const target = { kind: kind ?? "", group: group ?? "", version: version ?? "" };
  return offer.allows(target, encoding) ? { encoding, target, pretty } : undefined;
}

function matches(range: string, type: string): boolean {
  return range === type || range === "*/*" || range === `${type.split("/")[0]}/*`;
}

/** The clauses by quality, equal ones in the order of the header. */
function clausesOf(accept: string): Clause[] {
  const clauses = accept.split(",", MAX_CLAUSES).map((text): Clause => {
    const [type = "", ...rest] = text.split(";").map((part) => part.trim());
    const parameters = new Map(rest.map(parameterOf));
    const quality = Number.parseFloat(parameters.get("q") ?? "1");
    parameters.delete("q");
    return { type: type.toLowerCase(), quality: Number.isNaN(quality) ? 1 : quality, parameters };
  });
  return clauses.sort((a, b) => b.quality - a.quality);
}

function parameterOf(text: string): [string, string] {
  const mark = text.indexOf("=");
  if (mark === -1) return [text, ""];
  const value = text.slice(mark + 1).trim();
  return [text.slice(0, mark).trim(), value.replace(/^"(.*)"$/, "$1")];
}

/**
 * The encoding of a request's body. Throws ApiError 415.
 * @param contentType the header; undefined for none, which is JSON
 */
export function bodyEncoding(contentType: string | undefined, offered: Encodings): Encoding {
  if (contentType === undefined || contentType === "") return offered[0];
  const [type = ""] = contentType.split(";", 1);
  const wanted = type.trim().toLowerCase();
  const found = offered.find((encoding) => TYPE_OF[encoding] === wanted);
  if (found === undefined) throw unsupportedMediaType(offered.map(mediaTypeOf));
  return found;
}

/** Whether people read the response (apiserver: isPrettyPrint). */
export function wantsPretty(pretty: string, userAgent: string): boolean {
  if (pretty !== "") return /^(?:1|t|true)$/i.test(pretty);
  return /^(?:curl|Wget|Mozilla\/5\.0)/.test(userAgent);
}

const META_GROUP = "meta.k8s.io";
const META_VERSIONS = new Set(["v1", "v1beta1"]);
/** The encodings of Tables; there is no protobuf form. */
const TABLE_ENCODINGS: ReadonlySet<Encoding> = new Set(["json", "yaml"]);

/** The encodings of a resource's objects. */
export function encodingsOf(resource: ServedResource): Encodings {
  return resource.protobuf === undefined ? ["json", "yaml"] : ["json", "yaml", "protobuf"];
}

/** What the endpoints of a resource can send. */
export function offerOf(resource: ServedResource): Offer {
  return {
    encodings: encodingsOf(resource),
    allows: ({ kind, group, version }, encoding) => {
      if (group !== META_GROUP || !META_VERSIONS.has(version)) return false;
      if (kind === "Table") return resource.table !== undefined && TABLE_ENCODINGS.has(encoding);
      return kind === "PartialObjectMetadata" || kind === "PartialObjectMetadataList";
    },
  };
}

export type IncludeObject = "None" | "Metadata" | "Object";

/** The parameter includeObject. Throws ApiError 400. */
export function includeObjectOf(text: string): IncludeObject {
  if (text === "") return "Metadata";
  if (text === "None" || text === "Metadata" || text === "Object") return text;
  throw badRequest(
    "Unable to convert to Table as requested: includeObject: Invalid value: " +
      `${JSON.stringify(text)}: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

export function partialMetadata({ metadata }: KubeObject, { version }: MediaTarget): KubeObject {
  return { kind: "PartialObjectMetadata", apiVersion: `${META_GROUP}/${version}`, metadata };
}

/** A row of a Table. */
export function tableRow(
  object: KubeObject,
  table: TableConvertor,
  target: MediaTarget,
  include: IncludeObject,
  nowMs: number,
): Record<string, unknown> {
  const cells = table.cells(object, nowMs);
  if (include === "None") return { cells };
  return { cells, object: include === "Object" ? object : partialMetadata(object, target) };
}

/** A Table with these rows. @param columns null to leave them out, as for later watch events */
export function tableOf(
  target: MediaTarget,
  metadata: Record<string, unknown>,
  columns: readonly TableColumn[] | null,
  rows: readonly unknown[],
): Record<string, unknown> {
  const columnDefinitions = columns?.map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format,
    description,
    priority,
  }));
  return {
    kind: "Table",
    apiVersion: `${META_GROUP}/${target.version}`,
    metadata,
    columnDefinitions: columnDefinitions ?? null,
    rows,
  };
}
