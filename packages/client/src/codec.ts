/**
 * How the values of a program are bytes in the store: bytes, texts, JSON, and JSON that a schema
 * checks. The schema is of any library that has the Standard Schema interface (standardschema.dev),
 * such as Zod and Valibot.
 */
import { CodedError, fromUtf8, toUtf8 } from "@quorate/proto";

/** What a program reads, and what it may write. */
export interface ValueCodec<Out, In = Out> {
  /** Throws, or rejects with, InvalidValueError. @param key for the error */
  encode(value: In, key: string): Uint8Array | Promise<Uint8Array>;
  /** Throws, or rejects with, InvalidValueError. @param key for the error */
  decode(bytes: Uint8Array, key: string): Out | Promise<Out>;
}

/** What a schema finds wrong with a value. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type SchemaResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** A validator with the Standard Schema interface, version 1. */
export interface StandardSchema<In, Out> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Out> | Promise<SchemaResult<Out>>;
    readonly types?: { readonly input: In; readonly output: Out } | undefined;
  };
}

/** A value that is not JSON, or that the schema refuses. */
export class InvalidValueError extends CodedError<"InvalidValue"> {
  readonly key: string;
  readonly issues: readonly SchemaIssue[];

  constructor(key: string, issues: readonly SchemaIssue[]) {
    const texts = issues.map(({ message, path = [] }) =>
      [path.map((part) => String(typeof part === "object" ? part.key : part)).join("."), message]
        .filter((text) => text !== "")
        .join(": "),
    );
    super("InvalidValueError", "InvalidValue", `${key}: ${texts.join("; ")}`);
    this.key = key;
    this.issues = issues;
  }
}

/** Values as they are. */
export const bytes: ValueCodec<Uint8Array> = {
  encode: (value) => value,
  decode: (value) => value,
};

/** Texts, in UTF-8. */
export const text: ValueCodec<string> = {
  encode: (value) => fromUtf8(value),
  decode: (value) => toUtf8(value),
};

/** Values that JSON has, which nothing checks: say what they are. */
export function json<T>(): ValueCodec<T>;
/** JSON that the schema checks, when it is written and when it is read. */
export function json<In, Out>(schema: StandardSchema<In, Out>): ValueCodec<Out, In>;
export function json<In, Out>(schema?: StandardSchema<In, Out>): ValueCodec<Out, In> {
  return {
    async encode(value, key) {
      // What the schema makes of the value is for readers: it may be of another type.
      if (schema !== undefined) await checked(schema, value, key);
      const encoded = JSON.stringify(value) as string | undefined;
      if (encoded === undefined) throw new InvalidValueError(key, [{ message: "no JSON" }]);
      return fromUtf8(encoded);
    },
    async decode(encoded, key) {
      const value = parsed(encoded, key);
      return schema === undefined ? (value as Out) : checked(schema, value, key);
    },
  };
}

async function checked<Out>(
  schema: StandardSchema<never, Out> | StandardSchema<unknown, Out>,
  value: unknown,
  key: string,
): Promise<Out> {
  const result = await schema["~standard"].validate(value);
  if (result.issues !== undefined) throw new InvalidValueError(key, result.issues);
  return result.value;
}

function parsed(encoded: Uint8Array, key: string): unknown {
  try {
    return JSON.parse(toUtf8(encoded));
  } catch (error) {
    throw new InvalidValueError(key, [{ message: (error as Error).message }]);
  }
}
