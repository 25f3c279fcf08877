/**
 * The OpenAPI v2 document as protobuf (gnostic-models: openapiv2/OpenAPIv2.proto), which kubectl
 * and client-go prefer to JSON. Written are the parts that document-v2.ts makes; empty values are
 * left out, as in proto3.
 */
import { Writer } from "@quorate/proto";
import type { OpenApiNode } from "./definitions.ts";

const BYTES = 2;

/** Fields of openapi.v2.Schema that hold plain values. */
const SCHEMA_TEXTS: Readonly<Record<string, number>> = {
  $ref: 1,
  format: 2,
  title: 3,
  description: 4,
  pattern: 13,
};
const SCHEMA_DOUBLES: Readonly<Record<string, number>> = {
  multipleOf: 6,
  maximum: 7,
  minimum: 9,
};
const SCHEMA_BOOLS: Readonly<Record<string, number>> = {
  exclusiveMaximum: 8,
  exclusiveMinimum: 10,
  uniqueItems: 16,
};
const SCHEMA_INTS: Readonly<Record<string, number>> = {
  maxLength: 11,
  minLength: 12,
  maxItems: 14,
  minItems: 15,
  maxProperties: 17,
  minProperties: 18,
};
const METHODS: Readonly<Record<string, number>> = {
  get: 2,
  put: 3,
  post: 4,
  delete: 5,
  options: 6,
  head: 7,
  patch: 8,
};

/** Writes the document of documentV2. Yields between its parts. */
export function* gnosticDocument(document: OpenApiNode): Generator<undefined, Uint8Array> {
  const out = new GnosticWriter();
  out.text(1, document["swagger"]);
  out.message(2, () => {
    const info = document["info"] as OpenApiNode;
    out.text(1, info["title"]);
    out.text(2, info["version"]);
  });
  for (const [name, item] of Object.entries(document["paths"] as OpenApiNode)) {
    // Protobuf merges the parts of a message that occurs more than once.
    out.message(8, () => out.named(2, name, () => out.pathItem(item as OpenApiNode)));
    yield;
  }
  for (const [name, schema] of Object.entries(document["definitions"] as OpenApiNode)) {
    out.message(9, () => out.named(1, name, () => out.schema(schema as OpenApiNode)));
    yield;
  }
  for (const [name, each] of Object.entries(document["parameters"] as OpenApiNode))
    out.message(10, () => out.named(1, name, () => out.parameter(each as OpenApiNode)));
  for (const requirement of document["security"] as readonly OpenApiNode[])
    out.message(12, () => {
      for (const name of Object.keys(requirement)) out.named(1, name, () => {});
    });
  out.message(13, () => {
    for (const [name, each] of Object.entries(document["securityDefinitions"] as OpenApiNode))
      out.named(1, name, () => out.message(2, () => out.apiKey(each as OpenApiNode)));
  });
  return out.finish();
}

/** Writes messages of openapi.v2. */
class GnosticWriter {
  private readonly writer = new Writer();

  finish(): Uint8Array {
    return this.writer.finish();
  }

  text(number: number, value: unknown): void {
    if (typeof value !== "string" || value === "") return;
    this.writer.uint32((number << 3) | BYTES);
    this.writer.string(value);
  }

  texts(number: number, values: unknown): void {
    for (const value of (values ?? []) as readonly string[]) {
      this.writer.uint32((number << 3) | BYTES);
      this.writer.string(value);
    }
  }

  message(number: number, write: () => void): void {
    this.writer.uint32((number << 3) | BYTES);
    const start = this.writer.open();
    write();
    this.writer.close(start);
  }

  /** One of the messages with a name and a value. */
  named(number: number, name: string, write: () => void): void {
    this.message(number, () => {
      this.text(1, name);
      this.message(2, write);
    });
  }

  pathItem(item: OpenApiNode): void {
    for (const [method, number] of Object.entries(METHODS))
      if (item[method] !== undefined)
        this.message(number, () => this.operation(item[method] as OpenApiNode));
    this.parameterItems(9, item["parameters"]);
    this.extensions(10, item);
  }

  parameter(value: OpenApiNode): void {
    if (value["in"] === "body") {
      this.message(1, () => {
        this.text(2, value["name"]);
        this.text(3, "body");
        this.bool(4, value["required"]);
        this.message(5, () => this.schema(value["schema"] as OpenApiNode));
      });
      return;
    }
    const isPath = value["in"] === "path";
    this.message(2, () =>
      this.message(isPath ? 4 : 3, () => {
        this.bool(1, value["required"]);
        this.text(2, value["in"]);
        this.text(3, value["description"]);
        this.text(4, value["name"]);
        this.text(isPath ? 5 : 6, value["type"]);
        this.bool(isPath ? 19 : 20, value["uniqueItems"]);
      }),
    );
  }

  schema(schema: OpenApiNode): void {
    for (const [key, value] of Object.entries(schema)) this.schemaField(key, value);
    this.extensions(31, schema);
  }

  apiKey(value: OpenApiNode): void {
    this.text(1, value["type"]);
    this.text(2, value["name"]);
    this.text(3, value["in"]);
    this.text(4, value["description"]);
  }

  private schemaField(key: string, value: unknown): void {
    if (SCHEMA_TEXTS[key] !== undefined) this.text(SCHEMA_TEXTS[key], value);
    else if (SCHEMA_BOOLS[key] !== undefined) this.bool(SCHEMA_BOOLS[key], value);
    else if (SCHEMA_INTS[key] !== undefined) this.int(SCHEMA_INTS[key], value as number);
    else if (SCHEMA_DOUBLES[key] !== undefined) this.double(SCHEMA_DOUBLES[key], value as number);
    else if (key === "required") this.texts(19, value);
    else if (key === "enum")
      for (const each of value as readonly unknown[]) this.message(20, () => this.any(each));
    else if (key === "additionalProperties")
      this.message(21, () => {
        if (typeof value === "boolean") this.bool(2, value);
        else this.message(1, () => this.schema(value as OpenApiNode));
      });
    else if (key === "type") this.message(22, () => this.text(1, value));
    else if (key === "items")
      this.message(23, () => this.message(1, () => this.schema(value as OpenApiNode)));
    else if (key === "properties")
      this.message(25, () => {
        for (const [name, each] of Object.entries(value as OpenApiNode))
          this.named(1, name, () => this.schema(each as OpenApiNode));
      });
  }

  private operation(value: OpenApiNode): void {
    this.texts(1, value["tags"]);
    this.text(3, value["description"]);
    this.text(5, value["operationId"]);
    this.texts(6, value["produces"]);
    this.texts(7, value["consumes"]);
    this.parameterItems(8, value["parameters"]);
    this.message(9, () => {
      for (const [code, response] of Object.entries(value["responses"] as OpenApiNode))
        this.named(1, code, () => this.message(1, () => this.response(response as OpenApiNode)));
    });
    this.texts(10, value["schemes"]);
    this.extensions(13, value);
  }

  private response(value: OpenApiNode): void {
    this.text(1, value["description"]);
    const { schema } = value;
    if (schema !== undefined)
      this.message(2, () => this.message(1, () => this.schema(schema as OpenApiNode)));
  }

  private parameterItems(number: number, values: unknown): void {
    for (const each of (values ?? []) as readonly OpenApiNode[])
      this.message(number, () => {
        const reference = each["$ref"];
        if (reference !== undefined) this.message(2, () => this.text(1, reference));
        else this.message(1, () => this.parameter(each));
      });
  }

  private extensions(number: number, value: OpenApiNode): void {
    for (const [name, each] of Object.entries(value))
      if (name.startsWith("x-")) this.named(number, name, () => this.any(each));
  }

  /** YAML, of which JSON is a part. */
  private any(value: unknown): void {
    this.text(2, `${JSON.stringify(value)}\n`);
  }

  private bool(number: number, value: unknown): void {
    if (value !== true) return;
    this.writer.uint32(number << 3);
    this.writer.bool(true);
  }

  private int(number: number, value: number): void {
    this.writer.uint32(number << 3);
    this.writer.int64(value);
  }

  private double(number: number, value: number): void {
    const bits = new DataView(Float64Array.of(value).buffer).getBigUint64(0, true);
    this.writer.uint32((number << 3) | 1);
    this.writer.fixed64(bits);
  }
}
