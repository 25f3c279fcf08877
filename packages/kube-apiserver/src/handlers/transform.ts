/**
 * Other forms of objects that clients ask for: rows of a Table, and metadata alone (apiserver:
 * handlers/response.go).
 */
import type {
  KubeObject,
  ServedResource,
  TableColumn,
  TableConvertor,
} from "@quorate/kube-storage";
import { badRequest } from "@quorate/kube-storage";
import type { Encoding, MediaTarget, Offer } from "./negotiation.ts";

const META_GROUP = "meta.k8s.io";
const META_VERSIONS = new Set(["v1", "v1beta1"]);
/** The encodings of Tables; there is no protobuf form. */
const TABLE_ENCODINGS: ReadonlySet<Encoding> = new Set(["json", "yaml"]);

/** What the endpoints of a resource can send. */
export function offerOf(resource: ServedResource): Offer {
  const encodings: readonly Encoding[] =
    resource.protobuf === undefined ? ["json", "yaml"] : ["json", "yaml", "protobuf"];
  return {
    encodings,
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
