/**
 * The OpenAPI 3.1 document of etcd's gateway, from the annotations and comments in proto/.
 */
import { defined } from "@quorate/proto";
import type protobufjs from "protobufjs";
import { fullName, loadRoot, messagesOf, pathsOf, servicesOf } from "./json.ts";

const DESCRIPTION = `etcd's v3 API, version 3.7, as JSON over HTTP.

- 64-bit integers are strings in responses; requests may send numbers too.
- Bytes are base64: the standard alphabet in responses, either one in requests.
- A field that has its default (0, false, "", an empty list) is left out of a response.
- Requests may use the lower camel case name of a field, and the number of an enum's value.
- The responses of a stream are JSON objects, one a line; its requests follow each other in one body.`;

const INTEGERS: { readonly [type: string]: object } = {
  int32: { type: "integer", format: "int32" },
  uint32: { type: "integer", minimum: 0, maximum: 4294967295 },
  int64: { type: "string", format: "int64", pattern: "^-?[0-9]+$" },
  uint64: { type: "string", format: "uint64", pattern: "^[0-9]+$" },
};
const SCALARS: { readonly [type: string]: object } = {
  ...INTEGERS,
  bool: { type: "boolean" },
  string: { type: "string" },
  bytes: { type: "string", contentEncoding: "base64" },
};
/** google.rpc.Status, the form of errors. */
const STATUS_SCHEMA = {
  type: "object",
  description: "An error, as gRPC has it.",
  properties: {
    code: { type: "integer", format: "int32", description: "The gRPC status code." },
    message: { type: "string" },
    details: { type: "array", items: { type: "object" } },
  },
};

/** The document, indented. */
export function openApi(protobuf: typeof protobufjs, sources: ReadonlyMap<string, string>): string {
  const services = servicesOf(protobuf, loadRoot(protobuf, sources));
  const schemas: { [name: string]: object } = { "google.rpc.Status": STATUS_SCHEMA };
  for (const message of messagesOf(protobuf, services))
    schemas[fullName(message)] = messageSchema(protobuf, message);
  const paths = services.flatMap((service) =>
    service.methodsArray.flatMap((method) =>
      pathsOf(method).map((path, i) => [path, { post: operation(service, method, i) }]),
    ),
  );
  const document = {
    openapi: "3.1.0",
    info: { title: "Quorate", version: "3.7", description: DESCRIPTION },
    servers: [{ url: "/" }],
    tags: services.map((service) => ({ name: service.name, ...described(service) })),
    security: [{}, { token: [] }],
    paths: Object.fromEntries(paths),
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        token: {
          type: "apiKey",
          in: "header",
          name: "Authorization",
          description: "The token that /v3/auth/authenticate returned.",
        },
      },
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** The text of gen/openapi.json: the document without spaces. */
export function emitOpenApi(document: string): string {
  return `${JSON.stringify(JSON.parse(document))}\n`;
}

function described(object: protobufjs.ReflectionObject): { description?: string } {
  const text = object.comment ?? "";
  return text === "" ? {} : { description: text };
}

function reference(type: protobufjs.ReflectionObject): { $ref: string } {
  return { $ref: `#/components/schemas/${fullName(type)}` };
}

function operation(service: protobufjs.Service, method: protobufjs.Method, binding: number) {
  const request = defined(method.resolvedRequestType, "the request's type");
  const response = defined(method.resolvedResponseType, "the response's type");
  const error = { $ref: "#/components/schemas/google.rpc.Status" };
  const schema = method.responseStream
    ? { type: "object", properties: { result: reference(response), error } }
    : reference(response);
  return {
    operationId: `${service.name}_${method.name}${binding === 0 ? "" : binding + 1}`,
    tags: [service.name],
    ...described(method),
    requestBody: {
      required: true,
      ...(method.requestStream
        ? { description: "One or more requests, one after the other, while the body is open." }
        : {}),
      content: { "application/json": { schema: reference(request) } },
    },
    responses: {
      "200": {
        description: method.responseStream
          ? "The responses of the stream, one a line."
          : "The response.",
        content: { "application/json": { schema } },
      },
      default: {
        description: "An error.",
        content: { "application/json": { schema: error } },
      },
    },
  };
}

function messageSchema(protobuf: typeof protobufjs, type: protobufjs.Type): object {
  const properties = type.fieldsArray.map((field) => [field.name, fieldSchema(protobuf, field)]);
  return { type: "object", ...described(type), properties: Object.fromEntries(properties) };
}

function fieldSchema(protobuf: typeof protobufjs, field: protobufjs.Field): object {
  const single = typeSchema(protobuf, field);
  const oneof = field.partOf === null ? "" : `At most one of ${names(field.partOf)} is set.`;
  const text = [field.comment ?? "", oneof].filter((part) => part !== "").join(" ");
  const description = text === "" ? {} : { description: text };
  return field.repeated
    ? { type: "array", ...description, items: single }
    : { ...single, ...description };
}

function names(oneof: protobufjs.OneOf): string {
  return oneof.fieldsArray.map((field) => field.name).join(", ");
}

function typeSchema(protobuf: typeof protobufjs, field: protobufjs.Field): object {
  const type = field.resolvedType;
  if (type instanceof protobuf.Enum)
    return { type: "string", enum: Object.keys(type.values), default: type.valuesById[0] };
  return type === null ? SCALARS[field.type] : reference(type);
}
