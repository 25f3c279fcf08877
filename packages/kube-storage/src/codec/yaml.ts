/**
 * YAML of clients, read as Kubernetes does (sigs.k8s.io/yaml): YAML 1.1 with the first document
 * only; times stay texts, "yes" and "on" are true, 0644 is octal.
 */
import { CodedError, toUtf8, writeFromBase64 } from "@quorate/proto";
import type { Schema, YAMLException } from "js-yaml";
import { MAX_JSON_DEPTH, MAX_YAML_VALUES } from "./limits.ts";

/** A text that is not YAML, or has values that JSON has not. */
export class YamlSyntaxError extends CodedError<"BadYaml"> {
  constructor(message: string) {
    super("YamlSyntaxError", "BadYaml", message);
  }
}

export interface ParsedYaml {
  /** A JSON value. Places that an alias refers to are the same object. */
  readonly value: unknown;
  /** Empty, or one text about the first key that occurs twice, as a strict error has it. */
  readonly duplicates: readonly string[];
}

type Library = typeof import("js-yaml");

/** Characters of a duplicate key that an error shows. */
const MAX_SHOWN_KEY = 1024;

const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const INTEGER = /^[-+]?(?:0b[01_]+|0x[\da-fA-F_]+|0o?[0-7_]+|_*\d[\d_]*)$/;
const FLOAT = /^[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\._*\d[\d_]*)(?:[eE][-+]?\d+)?$/;
const NUMERIC_START = /^[-+.\d]/;
const TIME = /^\d{4}-\d\d?-\d\d?(?:$|[Tt \t])/;
const NOT_FINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

/** The value of a number; undefined for other texts, and for numbers that are too large. */
function numberOf(text: string): number | undefined {
  if (!NUMERIC_START.test(text)) return undefined;
  if (NOT_FINITE.test(text)) throw new YamlSyntaxError(`json: unsupported value: ${goName(text)}`);
  const plain = text.replace(/_/g, "");
  if (INTEGER.test(text)) return integerOf(plain);
  const value = FLOAT.test(text) ? Number(plain) : Number.NaN;
  return Number.isFinite(value) ? value : undefined;
}

function goName(text: string): string {
  if (/nan/i.test(text)) return "NaN";
  return text.startsWith("-") ? "-Inf" : "+Inf";
}

function integerOf(text: string): number {
  const sign = text.startsWith("-") ? -1 : 1;
  const digits = text.replace(/^[-+]/, "");
  // -0 is 0 in Go.
  return sign * Number(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits) + 0;
}

let schema: Schema | undefined;

function schemaOf({ FAILSAFE_SCHEMA, Type }: Library): Schema {
  const scalar = <T>(
    name: string,
    resolve: (text: string) => boolean,
    construct: (text: string) => T,
  ) => new Type(`tag:yaml.org,2002:${name}`, { kind: "scalar", resolve, construct });
  const bytesOf = (text: string): string => {
    const bytes = new Uint8Array(text.length);
    return toUtf8(bytes, 0, writeFromBase64(bytes, text.replace(/\s/g, ""), 0));
  };
  return FAILSAFE_SCHEMA.extend({
    implicit: [
      scalar(
        "null",
        (text) => text === null || /^(?:~|null|Null|NULL|)$/.test(text),
        () => null,
      ),
      scalar(
        "bool",
        (text) => TRUE.test(text) || FALSE.test(text),
        (text) => TRUE.test(text),
      ),
      scalar(
        "int",
        (text) => text !== null && NUMERIC_START.test(text) && INTEGER.test(text),
        (text) => numberOf(text),
      ),
      scalar(
        "float",
        (text) => text !== null && numberOf(text) !== undefined,
        (text) => numberOf(text),
      ),
      scalar(
        "merge",
        (text) => text === "<<",
        (text) => text,
      ),
    ],
    explicit: [scalar("binary", () => true, bytesOf)],
  });
}

let writtenSchema: Schema | undefined;

/** YAML 1.2; texts are quoted where YAML 1.1 has another value for them: yes, 0644, 2026-01-01. */
function writtenSchemaOf({ CORE_SCHEMA, Type }: Library): Schema {
  const isOther = (text: string): boolean =>
    TRUE.test(text) ||
    FALSE.test(text) ||
    NOT_FINITE.test(text) ||
    (NUMERIC_START.test(text) && (INTEGER.test(text) || FLOAT.test(text) || TIME.test(text)));
  const other = new Type("tag:yaml.org,2002:other", { kind: "scalar", resolve: isOther });
  return CORE_SCHEMA.extend({ implicit: [other] });
}

/**
 * A JSON value as YAML, for readers of YAML 1.1 and 1.2: keys sorted and lists not indented, as
 * Kubernetes writes it. Loads its library at the first call.
 */
export async function writeYaml(value: unknown): Promise<string> {
  const library = await import("js-yaml");
  writtenSchema ??= writtenSchemaOf(library);
  return library.dump(value, {
    schema: writtenSchema,
    noRefs: true,
    lineWidth: -1,
    skipInvalid: true,
    sortKeys: true,
    noArrayIndent: true,
    quotingType: '"',
  });
}

/**
 * Parses a text. Callers limit its length: it takes up to 0.1 ms for each KiB. Loads its library at
 * the first call. Rejects with YamlSyntaxError.
 */
export async function parseYaml(text: string): Promise<ParsedYaml> {
  const library = await import("js-yaml");
  schema ??= schemaOf(library);
  const load = (json: boolean): unknown => {
    let first: unknown = null;
    let isFirst = true;
    library.loadAll(
      text,
      (document) => {
        if (isFirst) first = document ?? null;
        isFirst = false;
      },
      { schema, json },
    );
    return first;
  };
  let value: unknown;
  const duplicates: string[] = [];
  try {
    value = load(false);
  } catch (error) {
    const { reason, mark } = asFailure(error);
    if (reason !== "duplicated mapping key") throw failure(error);
    duplicates.push(duplicateText(text, mark?.position ?? 0, mark?.line ?? 0));
    try {
      value = load(true);
    } catch (other) {
      throw failure(other);
    }
  }
  checkSize(value);
  return { value, duplicates };
}

function asFailure(error: unknown): Partial<YAMLException> {
  return error as Partial<YAMLException>;
}

function failure(error: unknown): unknown {
  if (error instanceof YamlSyntaxError) return error;
  const { reason, mark } = asFailure(error);
  if (reason === undefined) return error;
  return new YamlSyntaxError(`yaml: line ${(mark?.line ?? 0) + 1}: ${reason}`);
}

function duplicateText(text: string, position: number, line: number): string {
  const rest = text.slice(position, position + MAX_SHOWN_KEY).trimStart();
  const [quote] = rest;
  const isQuoted = quote === '"' || quote === "'";
  const [shown = ""] = isQuoted ? rest.slice(1).split(quote, 1) : rest.split(/[:\n]/, 1);
  const name = isQuoted ? shown : shown.trimEnd();
  return `yaml: unmarshal errors:\n  line ${line + 1}: key ${JSON.stringify(name)} already set in map`;
}

/** Refuses values that aliases multiply, or that are nested too deep. */
function checkSize(root: unknown): void {
  let values = 0;
  const walk = (value: unknown, depth: number): void => {
    if (++values > MAX_YAML_VALUES)
      throw new YamlSyntaxError("yaml: document contains excessive aliasing");
    if (typeof value !== "object" || value === null) return;
    if (depth > MAX_JSON_DEPTH) throw new YamlSyntaxError("yaml: exceeded max depth");
    for (const each of Object.values(value)) walk(each, depth + 1);
  };
  walk(root, 0);
}
