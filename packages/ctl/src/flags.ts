/**
 * Flags as etcdctl's library (pflag) reads them: "--name value", "--name=value", "-n value",
 * "-nvalue", "-n=value", booleans without a value, flags and arguments in any order, "--" before
 * arguments that begin with a dash. A general library reads some of these otherwise: it takes the
 * key "true" after "--prefix" for the flag's value, for one.
 */

/**
 * The kinds of value, as help names them. "strings" is a comma-separated list; given more than
 * once, it grows.
 */
export type FlagKind = "bool" | "string" | "int" | "duration" | "strings";

/** One declared flag. */
export interface Flag {
  readonly kind: FlagKind;
  /** One letter, or undefined. */
  readonly shorthand?: string;
  /** In the form that the command line takes. */
  readonly defaultText: string;
  readonly doc: string;
  /** True if the command does not run without it. */
  readonly required?: boolean;
  /** What the value may be, where that is one of a few words; shells complete it. */
  readonly values?: readonly string[];
}

/** Flags by name. */
export type Flags = Readonly<Record<string, Flag>>;

/** A command line that cannot be read. */
export class FlagError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "FlagError";
  }
}

/**
 * The values of flags, given or default. Reading one that is not declared, or of another kind, is a
 * mistake in the program.
 */
export class FlagValues {
  readonly #flags: ReadonlyMap<string, Flag>;
  readonly #texts = new Map<string, string[]>();

  constructor(flags: ReadonlyMap<string, Flag>) {
    this.#flags = flags;
  }

  /** Checks and takes a value; `shown` is how the flag stands in messages. Throws FlagError. */
  set(name: string, text: string, shown = `--${name}`): void {
    const flag = this.#flags.get(name)!;
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

  /** Whether the flag was given. */
  isSet(name: string): boolean {
    return this.#texts.has(name);
  }

  bool(name: string): boolean {
    return parsers.bool(this.#last(name, "bool"));
  }

  string(name: string): string {
    return this.#last(name, "string");
  }

  /** A whole number; beyond the safe integers the nearest safe one. */
  int(name: string): number {
    return parsers.int(this.#last(name, "int"));
  }

  durationMs(name: string): number {
    return parsers.duration(this.#last(name, "duration"));
  }

  strings(name: string): readonly string[] {
    return this.#all(name, "strings").flatMap((text) => parsers.strings(text));
  }

  /** The value as --debug shows it. */
  text(name: string): string {
    const flag = this.#flags.get(name)!;
    return flag.kind === "strings"
      ? `[${this.strings(name).join(",")}]`
      : this.#last(name, flag.kind);
  }

  #last(name: string, kind: FlagKind): string {
    return this.#all(name, kind).at(-1)!;
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

function parseBool(text: string): boolean {
  if (/^(?:1|t|T|true|TRUE|True)$/.test(text)) return true;
  if (/^(?:0|f|F|false|FALSE|False)$/.test(text)) return false;
  throw new Error(`strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
}

const INT64_LIMIT = 1n << 63n;

/**
 * An int64 in Go's words, as a bigint. `base` is that of digits without a prefix; 0 allows
 * prefixes. Throws Error with Go's text.
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
 * An int64 as a number; beyond the safe integers the nearest safe one, which no revision or count
 * reaches.
 */
export function toSafeNumber(value: bigint): number {
  const limit = BigInt(Number.MAX_SAFE_INTEGER);
  return Number(value > limit ? limit : value < -limit ? -limit : value);
}

function parseInt64(text: string): number {
  return toSafeNumber(parseBigInt64(text, 0));
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

function parseDurationMs(text: string): number {
  const body = text.replace(/^[+-]/, "");
  if (body === "0") return 0;
  let totalMs = 0;
  let end = 0;
  for (const part of body.matchAll(/([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([^0-9.]*)/g)) {
    if (part.index !== end) break;
    if (part[2] === "") throw new Error(`time: missing unit in duration ${JSON.stringify(text)}`);
    const unitMs = UNIT_MS[part[2]];
    if (unitMs === undefined)
      throw new Error(
        `time: unknown unit ${JSON.stringify(part[2])} in duration ${JSON.stringify(text)}`,
      );
    totalMs += Number(part[1]) * unitMs;
    end = part.index + part[0].length;
  }
  if (end === 0 || end !== body.length)
    throw new Error(`time: invalid duration ${JSON.stringify(text)}`);
  return text.startsWith("-") ? -totalMs : totalMs;
}

function parseStrings(text: string): readonly string[] {
  return text === "" ? [] : text.split(",");
}

/** What is met while a command line is read. */
export interface FlagSink {
  /** The flags that may stand here; it may change as arguments are met. */
  readonly flags: ReadonlyMap<string, Flag>;
  flag(name: string, text: string, shown: string): void;
  argument(text: string): void;
  /** Told of "--"; only arguments follow. */
  dashes?(): void;
}

/** Reads a command line in order. Throws FlagError. */
export function readFlags(argv: readonly string[], sink: FlagSink): void {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i];
    const following = (): string | undefined => (i + 1 < argv.length ? argv[++i] : undefined);
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

function readLong(word: string, sink: FlagSink, following: () => string | undefined): void {
  const equals = word.indexOf("=");
  const name = word.slice(2, equals < 0 ? undefined : equals);
  if (name === "" || name.startsWith("-")) throw new FlagError(`bad flag syntax: ${word}`);
  const flag = sink.flags.get(name);
  if (flag === undefined) throw new FlagError(`unknown flag: --${name}`);
  const shown = flag.shorthand === undefined ? `--${name}` : `-${flag.shorthand}, --${name}`;
  const text = equals >= 0 ? word.slice(equals + 1) : flag.kind === "bool" ? "true" : following();
  if (text === undefined) throw new FlagError(`flag needs an argument: --${name}`);
  sink.flag(name, text, shown);
}

/**
 * "-abc" is three flags if a and b are booleans; the rest after one that takes a value is its
 * value.
 */
function readShort(word: string, sink: FlagSink, following: () => string | undefined): void {
  for (let at = 1; at < word.length; at++) {
    const letter = word[at];
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
    const text = rest.startsWith("=") ? rest.slice(1) : rest !== "" ? rest : following();
    if (text === undefined)
      throw new FlagError(`flag needs an argument: ${quoteRune(letter)} in -${word.slice(at)}`);
    sink.flag(name, text, shown);
    return;
  }
}

function quoteRune(letter: string): string {
  return `'${letter}'`;
}
