/**
 * What an option is. Each one is declared once (options-*.ts); flags, ETCD_* variables, keys of the
 * config file, --help and docs/reference/configuration.md all come from the declaration.
 */
import { formatDurationMs } from "@quorate/host";
import {
  inRange,
  type MemberUrl,
  parseBool,
  parseDurationMs,
  parseInteger,
  parseList,
  parseUniqueList,
  parseUrls,
  ValueError,
} from "@quorate/member";

/**
 * What setting the option does today.
 * - effective: what its doc says.
 * - pointless: it steers something that this server does not have; a value other than the default
 *   is warned of.
 * - refused: to ignore it would be dangerous, so a value other than the default stops the start.
 */
export type Stage =
  | { readonly kind: "effective" }
  | { readonly kind: "pointless"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string; readonly harmless: readonly string[] };

/** The kinds of value, as --help names them. */
export type ValueKind = "string" | "bool" | "uint" | "int" | "duration" | "urls" | "list";

/**
 * One declared option with values of type T. F is the field of ServerConfig that takes the value,
 * or undefined where resolve*.ts makes something of it.
 */
export interface Option<T, F extends string | undefined = string | undefined> {
  readonly kind: ValueKind;
  /** Reads a flag's or variable's text. Throws ValueError. */
  readonly parse: (text: string) => T;
  /** Reads a value of the config file. Throws ValueError. */
  readonly fromFile: (value: unknown) => T;
  /** The default in the form that `parse` reads. */
  readonly defaultText: string;
  /** What --help shows as default where the text alone would mislead. */
  readonly defaultDoc: string | undefined;
  /** The unit of the number, such as "ms" or "bytes". */
  readonly unit: string | undefined;
  /** One or a few sentences for people. */
  readonly doc: string;
  readonly stage: Stage;
  /** Names of the flag in earlier releases; accepted with a warning. */
  readonly aliases: readonly string[];
  /**
   * The key in the config file, with a dot where it is nested; undefined where it is the flag's
   * name.
   */
  readonly fileKey: string | undefined;
  readonly field: F;
  /** The number that 0 stands for; undefined if 0 is a value like others. */
  readonly zeroMeans: number | undefined;
  /** The values of a text that has only some; undefined for any. */
  readonly allowed: readonly string[] | undefined;
}

/** The parts of a declaration besides its name, type, default and doc. */
interface OptionSpec<F extends string | undefined> {
  readonly stage?: Stage;
  readonly unit?: string;
  readonly defaultDoc?: string;
  readonly aliases?: readonly string[];
  /** Only where it is not the flag's name. */
  readonly fileKey?: string;
  /** The field of ServerConfig that takes the value as it is. */
  readonly field?: F;
  readonly zeroMeans?: number;
}

/** The feature is there. */
export const effective: Stage = { kind: "effective" };

/** There will be no such feature. */
export function pointless(why: string): Stage {
  return { kind: "pointless", why };
}

/**
 * Not to be ignored, so refused until the feature is there.
 * @param harmless further values without effect, as `parse` reads them; the default is one
 * anyway
 */
export function refused(why: string, harmless: readonly string[] = []): Stage {
  return { kind: "refused", why, harmless };
}

function make<T, F extends string | undefined>(
  kind: ValueKind,
  defaultText: string,
  doc: string,
  spec: OptionSpec<F>,
  parse: (text: string) => T,
  fromFile: (value: unknown) => T,
  allowed?: readonly string[],
): Option<T, F> {
  return {
    kind,
    parse,
    fromFile,
    defaultText,
    defaultDoc: spec.defaultDoc,
    unit: spec.unit,
    doc,
    stage: spec.stage ?? effective,
    aliases: spec.aliases ?? [],
    fileKey: spec.fileKey,
    field: spec.field as F,
    zeroMeans: spec.zeroMeans,
    allowed,
  };
}

function scalarText(value: unknown): string {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return String(value);
  throw new ValueError("expected a single value");
}

/** A text. `allowed` limits it to some values. */
export function stringOption<
  const F extends string | undefined = undefined,
  const A extends string = string,
>(
  defaultText: string,
  doc: string,
  spec: OptionSpec<F> & { readonly allowed?: readonly A[] } = {},
): Option<A, F> {
  const { allowed } = spec;
  const parse = (text: string): A => {
    if (allowed !== undefined && !(allowed as readonly string[]).includes(text))
      throw new ValueError(`must be one of ${allowed.map((one) => one || '""').join(", ")}`);
    return text as A;
  };
  const fromFile = (value: unknown) => parse(scalarText(value));
  return make("string", defaultText, doc, spec, parse, fromFile, allowed);
}

const YAML_BOOL: Readonly<Record<string, boolean>> = { yes: true, no: false, on: true, off: false };

/** Yes or no. On the command line the flag alone means true; a value needs the "=" form. */
export function boolOption<const F extends string | undefined = undefined>(
  defaultValue: boolean,
  doc: string,
  spec: OptionSpec<F> = {},
): Option<boolean, F> {
  return make("bool", String(defaultValue), doc, spec, parseBool, (value) => {
    if (typeof value === "boolean") return value;
    const text = scalarText(value);
    return YAML_BOOL[text.toLowerCase()] ?? parseBool(text);
  });
}

function numberFromFile(
  value: unknown,
  min: number,
  max: number,
  unit: string | undefined,
): number {
  if (typeof value !== "number") return parseInteger(scalarText(value), min, max, unit);
  if (!Number.isInteger(value)) throw new ValueError("expected a whole number");
  return inRange(value, min, max);
}

/** A whole number from 0 to `max`. */
export function uintOption<const F extends string | undefined = undefined>(
  defaultValue: number,
  doc: string,
  spec: OptionSpec<F> & { readonly max?: number } = {},
): Option<number, F> {
  const { max = Number.MAX_SAFE_INTEGER } = spec;
  return make(
    "uint",
    String(defaultValue),
    doc,
    spec,
    (text) => parseInteger(text, 0, max, spec.unit),
    (value) => numberFromFile(value, 0, max, spec.unit),
  );
}

/** A whole number that may be negative. */
export function intOption<const F extends string | undefined = undefined>(
  defaultValue: number,
  doc: string,
  spec: OptionSpec<F> = {},
): Option<number, F> {
  return make(
    "int",
    String(defaultValue),
    doc,
    spec,
    (text) => parseInteger(text, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, spec.unit),
    (value) => numberFromFile(value, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, spec.unit),
  );
}

/**
 * A duration in Go's form; its value is in milliseconds. In the config file a bare number counts
 * nanoseconds, as in etcd's.
 */
export function durationOption<const F extends string | undefined = undefined>(
  defaultMs: number,
  doc: string,
  spec: OptionSpec<F> = {},
): Option<number, F> {
  return make("duration", formatDurationMs(defaultMs), doc, spec, parseDurationMs, (value) => {
    if (typeof value === "number") return value / 1e6;
    return parseDurationMs(scalarText(value));
  });
}

function listText(value: unknown): string {
  return Array.isArray(value) ? value.map(scalarText).join(",") : scalarText(value);
}

/** Comma-separated URLs (in the config file also a list). */
export function urlsOption<const F extends string | undefined = undefined>(
  defaultText: string,
  doc: string,
  spec: OptionSpec<F> = {},
): Option<readonly MemberUrl[], F> {
  return make("urls", defaultText, doc, spec, parseUrls, (value) => parseUrls(listText(value)));
}

/**
 * Comma-separated texts (in the config file also a list); `unique` sorts them and keeps each once.
 */
export function listOption<const F extends string | undefined = undefined>(
  defaultText: string,
  doc: string,
  spec: OptionSpec<F> & { readonly unique?: boolean } = {},
): Option<readonly string[], F> {
  const parse = spec.unique ? parseUniqueList : parseList;
  return make("list", defaultText, doc, spec, parse, (value) => parse(listText(value)));
}
