/**
 * Parses flags as pflag, etcdctl's library, does: "--name value", "--name=value", "-n value",
 * "-nvalue", "-n=value", booleans without a value, flags and arguments in any order, "--" before
 * arguments that begin with a dash. General libraries differ: for example, they take the key "true"
 * after "--prefix" for the flag's value.
 */

import { parseDuration } from "@quorate/host";
import { CodedError, defined, goBool } from "@quorate/proto";

/**
 * The kinds of value, as help names them. "strings" is a comma-separated list; a repeated flag
 * appends to it.
 */
export type FlagKind = "bool" | "string" | "int" | "duration" | "strings";

/** The declaration of a flag. */
export interface Flag {
  readonly kind: FlagKind;
  /** One letter, or undefined. */
  readonly shorthand?: string;
  /** In the syntax of the command line. */
  readonly defaultText: string;
  readonly doc: string;
  /** Whether the command refuses to run without it. */
  readonly required?: boolean;
  /** The possible values, where they are a few words; shells complete them. */
  readonly values?: readonly string[];
  /** The value where none is given: the next word is its value only if it is one of `values`. */
  readonly bareText?: string;
}

/** Flags by name. */
export type Flags = Readonly<Record<string, Flag>>;

type MoreOfFlag = Omit<Flag, "kind" | "defaultText" | "doc">;

const flagOf =
  (kind: FlagKind, usual?: string) =>
  (doc: string, defaultText: string = usual ?? "", more: MoreOfFlag = {}): Flag => ({
    kind,
    defaultText,
    doc,
    ...more,
  });

/** Declarations of flags, by kind; without a default false, 0 or empty. */
export const textFlag = flagOf("string");
export const boolFlag = flagOf("bool", "false");
export const listFlag = flagOf("strings");
export const intFlag = flagOf("int", "0");
export const durationFlag = flagOf("duration");

/** A malformed command line. */
export class FlagError extends CodedError<"BadFlag"> {
  constructor(message: string) {
    super("FlagError", "BadFlag", message);
  }
}

/** A flag whose value is refused: the text is for the operator, and printed as it is. */
export class FlagRefusal extends CodedError<"BadFlag"> {
  constructor(message: string) {
    super("FlagRefusal", "BadFlag", message);
  }
}

/**
 * The values of flags, set or default. Reading an undeclared flag, or one of another kind, is a bug
 * and throws TypeError.
 */
export class FlagValues {
  readonly #flags: ReadonlyMap<string, Flag>;
  readonly #texts = new Map<string, string[]>();

  constructor(flags: ReadonlyMap<string, Flag>) {
    this.#flags = flags;
  }

  /** Checks and stores a value. Throws FlagError. @param shown the flag as messages show it */
  set(name: string, text: string, shown = `--${name}`): void {
    const flag = defined(this.#flags.get(name), "the flag");
    try {
      parsers[flag.kind](text);
    } catch (error) {
      throw new FlagError(
        `invalid argument ${JSON.stringify(text)} for ${JSON.stringify(shown)} flag: ${(error as Error).message}`,
      );
    }
    const earlier = flag.kind === "strings" ? (this.#texts.get(name) ?? []) : [];
    this.#texts.set(name, [...earlier, text]);
  }

  /** Whether the flag was set. */
  isSet(name: string): boolean {
    return this.#texts.has(name);
  }

  bool(name: string): boolean {
    return parsers.bool(this.#last(name, "bool"));
  }

  string(name: string): string {
    return this.#last(name, "string");
  }

  /** A whole number; clamped to the safe integers. */
  int(name: string): number {
    return parsers.int(this.#last(name, "int"));
  }

  /** A whole number in a range. Throws FlagRefusal where it is not in it. */
  intWithin(name: string, min: number, max: number): number {
    const value = this.int(name);
    if (value >= min && value <= max) return value;
    throw new FlagRefusal(`--${name} is ${value}; it must be from ${min} to ${Math.floor(max)}`);
  }

  durationMs(name: string): number {
    return parsers.duration(this.#last(name, "duration"));
  }

  strings(name: string): readonly string[] {
    return this.#all(name, "strings").flatMap((text) => parsers.strings(text));
  }

  /** The value as --debug shows it. */
  text(name: string): string {
    const flag = defined(this.#flags.get(name), "the flag");
    return flag.kind === "strings"
      ? `[${this.strings(name).join(",")}]`
      : this.#last(name, flag.kind);
  }

  #last(name: string, kind: FlagKind): string {
    return defined(this.#all(name, kind).at(-1), "the value of a flag");
  }

  #all(name: string, kind: FlagKind): readonly string[] {
    const flag = this.#flags.get(name);
    if (flag?.kind !== kind) throw new TypeError(`no flag --${name} of kind ${kind} is declared`);
    return this.#texts.get(name) ?? [flag.defaultText];
  }
}

const parsers = {
  bool: parseBool,
  string: (text: string) => text,
  int: parseInt64,
  duration: parseDurationMs,
  strings: parseStrings,
};

/** A boolean as Go's strconv.ParseBool reads it. Throws Error with Go's text. */
export function parseBool(text: string): boolean {
  const value = goBool(text);
  if (value !== undefined) return value;
  throw new Error(`strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
}

const INT64_LIMIT = 1n << 63n;

/**
 * Parses an int64 as Go's strconv.ParseInt. Throws Error with Go's text.
 * @param base of the digits; 0 allows the prefixes 0x, 0b, 0o and 0
 */
export function parseBigInt64(text: string, base: 0 | 10 | 16): bigint {
  const digits = {
    0: /^[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|[0-9]+)$/,
    10: /^[+-]?[0-9]+$/,
    16: /^[+-]?[0-9a-fA-F]+$/,
  }[base];
  if (!digits.test(text))
    throw new Error(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  const body = text.replace(/^[+-]/, "");
  const octal = base === 0 && /^0[0-7]+$/.test(body);
  const magnitude = BigInt(base === 16 ? `0x${body}` : octal ? `0o${body}` : body);
  const value = text.startsWith("-") ? -magnitude : magnitude;
  if (value >= INT64_LIMIT || value < -INT64_LIMIT)
    throw new Error(`strconv.ParseInt: parsing ${JSON.stringify(text)}: value out of range`);
  return value;
}

/**
 * An int64 as a number; clamped to the safe integers, which no revision or count
 * reaches.
 */
export function toSafeNumber(value: bigint): number {
  const limit = BigInt(Number.MAX_SAFE_INTEGER);
  return Number(value > limit ? limit : value < -limit ? -limit : value);
}

function parseInt64(text: string): number {
  return toSafeNumber(parseBigInt64(text, 0));
}

function parseDurationMs(text: string): number {
  const result = parseDuration(text);
  if (typeof result === "number") return result;
  throw new Error(result.message);
}

function parseStrings(text: string): readonly string[] {
  return text === "" ? [] : text.split(",");
}

/** Receives the parts of a command line in order. */
export interface FlagSink {
  /** The flags known at this point; arguments may change it. */
  readonly flags: ReadonlyMap<string, Flag>;
  flag(name: string, text: string, shown: string): void;
  argument(text: string): void;
  /** Called at "--"; only arguments follow. */
  dashes?(): void;
}

/** Parses a command line in order. Throws FlagError. */
export function readFlags(argv: readonly string[], sink: FlagSink): void {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? "";
    const following = (flag: Flag): string | undefined =>
      takesNext(flag, argv[i + 1]) ? argv[++i] : flag.bareText;
    if (word === "--") {
      sink.dashes?.();
      for (const argument of argv.slice(i + 1)) sink.argument(argument);
      return;
    }
    if (word.startsWith("--")) readLong(word, sink, following);
    else if (word.startsWith("-") && word.length > 1) readShort(word, sink, following);
    else sink.argument(word);
  }
}

/** Whether the word behind a flag that stands alone is its value. */
export function takesNext(flag: Flag, next: string | undefined): boolean {
  if (next === undefined || flag.kind === "bool") return false;
  return flag.bareText === undefined || flag.values?.includes(next) === true;
}

type Following = (flag: Flag) => string | undefined;

function readLong(word: string, sink: FlagSink, following: Following): void {
  const equals = word.indexOf("=");
  const name = word.slice(2, equals < 0 ? undefined : equals);
  if (name === "" || name.startsWith("-")) throw new FlagError(`bad flag syntax: ${word}`);
  const flag = sink.flags.get(name);
  if (flag === undefined) throw new FlagError(`unknown flag: --${name}`);
  const shown = flag.shorthand === undefined ? `--${name}` : `-${flag.shorthand}, --${name}`;
  const text =
    equals >= 0 ? word.slice(equals + 1) : flag.kind === "bool" ? "true" : following(flag);
  if (text === undefined) throw new FlagError(`flag needs an argument: --${name}`);
  sink.flag(name, text, shown);
}

/**
 * "-abc" is three flags if a and b are booleans; the rest behind a flag that takes a value is its
 * value.
 */
function readShort(word: string, sink: FlagSink, following: Following): void {
  for (let at = 1; at < word.length; at++) {
    const letter = word.charAt(at);
    const found = [...sink.flags].find(([, flag]) => flag.shorthand === letter);
    if (found === undefined)
      throw new FlagError(`unknown shorthand flag: ${quoteRune(letter)} in -${word.slice(at)}`);
    const [name, flag] = found;
    const shown = `-${letter}, --${name}`;
    const rest = word.slice(at + 1);
    if (flag.kind === "bool" && !rest.startsWith("=")) {
      sink.flag(name, "true", shown);
      continue;
    }
    const text = rest.startsWith("=") ? rest.slice(1) : rest !== "" ? rest : following(flag);
    if (text === undefined)
      throw new FlagError(`flag needs an argument: ${quoteRune(letter)} in -${word.slice(at)}`);
    sink.flag(name, text, shown);
    return;
  }
}

function quoteRune(letter: string): string {
  return `'${letter}'`;
}
