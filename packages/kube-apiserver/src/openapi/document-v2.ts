/** The OpenAPI v2 document of all groups (kube-openapi: pkg/builder). */
import type { GroupVersion, ServedResource } from "@quorate/kube-storage";
import { Definitions, type OpenApiNode } from "./definitions.ts";
import { CODES, INFO, SECURITY, SECURITY_SCHEMES } from "./document-parts.ts";
import { type Operation, type PathItem, pathsOf, tagOf } from "./operations.ts";
import { parameter } from "./parameters.ts";

/** The resources of one group and version. */
export interface VersionResources {
  readonly version: GroupVersion;
  readonly resources: readonly ServedResource[];
}

/** Makes the document. Yields between its parts, so that a caller can let others run. */
export function* documentV2(all: readonly VersionResources[]): Generator<undefined, OpenApiNode> {
  const definitions = new Definitions(
    "v2",
    all.map(({ version }) => version),
  );
  const paths: OpenApiNode = {};
  const parameters = new Set<string>();
  for (const { version, resources } of all)
    for (const item of pathsOf(version, resources)) {
      paths[item.path] = pathItem(item, version, definitions, parameters);
      yield;
    }
  while (definitions.step()) yield;
  return {
    swagger: "2.0",
    info: INFO,
    paths,
    definitions: definitions.sorted(),
    parameters: Object.fromEntries([...parameters].sort().map((name) => [name, shared(name)])),
    securityDefinitions: SECURITY_SCHEMES,
    security: SECURITY,
  };
}

/**
 * Parameters that are written out in each operation, as in Kubernetes' document: kubectl before
 * 1.27 looks for dryRun there, and does not follow references.
 */
const INLINE: ReadonlySet<string> = new Set(["dryRun", "fieldValidation"]);

function shared(name: string): OpenApiNode {
  const { in: place, type, description } = parameter(name);
  const required = place === "path" ? { required: true } : {};
  return { uniqueItems: true, type, description, name, in: place, ...required };
}

function pathItem(
  item: PathItem,
  version: GroupVersion,
  definitions: Definitions,
  parameters: Set<string>,
): OpenApiNode {
  const refer = (name: string): OpenApiNode => {
    if (INLINE.has(name)) return shared(name);
    parameters.add(name);
    return { $ref: `#/parameters/${name}` };
  };
  const out: OpenApiNode = {};
  for (const operation of item.operations)
    out[operation.method] = operationObject(operation, version, definitions, refer);
  if (item.parameters.length > 0) out["parameters"] = item.parameters.map(refer);
  return out;
}

function operationObject(
  operation: Operation,
  version: GroupVersion,
  definitions: Definitions,
  refer: (name: string) => OpenApiNode,
): OpenApiNode {
  const { kind, action, body } = operation;
  const schema = definitions.reference(operation.response);
  const responses: OpenApiNode = {};
  for (const code of operation.codes) responses[code] = { description: CODES[code], schema };
  responses["401"] = { description: "Unauthorized" };
  const parameters = operation.parameters.map(refer);
  if (body !== undefined)
    parameters.unshift({
      name: "body",
      in: "body",
      ...(operation.bodyRequired ? { required: true } : {}),
      schema: definitions.reference(body),
    });
  const out: OpenApiNode = {
    description: operation.description,
    consumes: operation.consumes ?? ["*/*"],
    produces: operation.produces,
    schemes: ["https"],
    tags: [tagOf(version)],
    operationId: operation.id,
    ...(parameters.length > 0 ? { parameters } : {}),
    responses,
  };
  if (action !== "") out["x-kubernetes-action"] = action;
  if (kind !== undefined) out["x-kubernetes-group-version-kind"] = { ...kind };
  return out;
}
