/** OpenAPI v3 documents of one group and version each (kube-openapi: pkg/builder3). */
import { type GroupVersion, isBuiltIn, type ServedResource } from "@quorate/kube-storage";
import { Definitions, type OpenApiNode } from "./definitions.ts";
import { CODES, CUSTOM_INFO, INFO, SECURITY, SECURITY_SCHEMES } from "./document-parts.ts";
import { type Operation, type PathItem, pathsOf, tagOf } from "./operations.ts";
import { parameter } from "./parameters.ts";

/**
 * Makes the document. Yields between its parts, so that a caller can let others run.
 * @param resources those of the group and version, with their subresources
 */
export function* documentV3(
  version: GroupVersion,
  resources: readonly ServedResource[],
): Generator<undefined, OpenApiNode> {
  const definitions = new Definitions("v3", [version]);
  const paths: OpenApiNode = {};
  for (const item of pathsOf(version, resources)) {
    paths[item.path] = pathItem(item, version, definitions);
    yield;
  }
  while (definitions.step()) yield;
  const schemas = definitions.sorted();
  // Custom kinds are published by another controller in Kubernetes, which knows no security.
  if (!resources.some(isBuiltIn))
    return { openapi: "3.0.0", info: CUSTOM_INFO, paths, components: { schemas } };
  return {
    openapi: "3.0.0",
    info: INFO,
    paths,
    components: { schemas, securitySchemes: SECURITY_SCHEMES },
    security: SECURITY,
  };
}

function pathItem(item: PathItem, version: GroupVersion, definitions: Definitions): OpenApiNode {
  const out: OpenApiNode = {};
  for (const operation of item.operations)
    out[operation.method] = operationObject(operation, version, definitions);
  if (item.parameters.length > 0) out["parameters"] = item.parameters.map(parameterObject);
  return out;
}

function parameterObject(name: string): OpenApiNode {
  const { in: place, type, description } = parameter(name);
  const required = place === "path" ? { required: true } : {};
  return { name, in: place, description, ...required, schema: { type, uniqueItems: true } };
}

function operationObject(
  operation: Operation,
  version: GroupVersion,
  definitions: Definitions,
): OpenApiNode {
  const { kind, action, body, produces } = operation;
  const response = { schema: definitions.reference(operation.response) };
  const content = Object.fromEntries(produces.map((type) => [type, response]));
  const responses: OpenApiNode = {};
  for (const code of operation.codes) responses[code] = { description: CODES[code], content };
  responses["401"] = { description: "Unauthorized" };
  const out: OpenApiNode = {
    tags: [tagOf(version)],
    description: operation.description,
    operationId: operation.id,
  };
  if (operation.parameters.length > 0)
    out["parameters"] = operation.parameters.map(parameterObject);
  if (body !== undefined) {
    const schema = { schema: definitions.reference(body) };
    const types = operation.consumes ?? ["*/*"];
    out["requestBody"] = {
      content: Object.fromEntries(types.map((type) => [type, schema])),
      ...(operation.bodyRequired ? { required: true } : {}),
    };
  }
  out["responses"] = responses;
  if (action !== "") out["x-kubernetes-action"] = action;
  if (kind !== undefined) out["x-kubernetes-group-version-kind"] = { ...kind };
  return out;
}
