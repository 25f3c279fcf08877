/**
 * Command lines of long runs (robustness, fuzzing): options declared once, with their
 * ranges read by name.
 */
import { type Options, readArguments } from "../../scripts/dev/command-line.ts";

/** An option with a value. */
export interface Option {
  /** The name of its value in the help, such as N or FILE. */
  readonly value: string;
  /** The default; empty for none. */
  readonly initial: string;
  readonly doc: string;
}

/** Options by name, and switches by name with their help. */
export interface Declared {
  readonly options: Readonly<Record<string, Option>>;
  readonly switches: Readonly<Record<string, string>>;
}

/** The values of a command line. */
export class Values<D extends Declared> {
  readonly #declared: D;
  readonly #values: Readonly<Record<string, string | boolean | undefined>>;

  /**
   * Ends the process with 0 for --help, and with 2 for an unknown option, a missing value, or an
   * argument that is no option.
   * @param usage the command and what it does
   */
  constructor(usage: string, declared: D, args: readonly string[]) {
    this.#declared = declared;
    const described = Object.entries(declared.options).map(([name, { value, initial, doc }]) => {
      const describe = `${value}: ${doc}${initial === "" ? "" : ` (${initial})`}`;
      return [name, { type: "string", requiresArg: true, describe }] as const;
    });
    const switches = Object.entries(declared.switches).map(
      ([name, describe]) => [name, { type: "boolean", describe }] as const,
    );
    const options: Readonly<Record<string, Options>> = Object.fromEntries([
      ...described,
      ...switches,
    ]);
    const { values } = readArguments(usage, options, "", args);
    this.#values = values as Readonly<Record<string, string | boolean | undefined>>;
  }

  isSet(name: keyof D["switches"] & string): boolean {
    return this.#values[name] === true;
  }

  /** The value, or the default. */
  text(name: keyof D["options"] & string): string {
    return (this.#values[name] as string | undefined) ?? this.#declared.options[name].initial;
  }

  /** A number in a range, bounds included. @throws Error that names the option and the range */
  number(
    name: keyof D["options"] & string,
    lowest: number,
    highest: number,
    isWhole = true,
  ): number {
    const given = this.text(name);
    const value = Number(given);
    const isInRange = value >= lowest && value <= highest;
    if (given.trim() !== "" && isInRange && (!isWhole || Number.isInteger(value))) return value;
    const kind = isWhole ? "a whole number" : "a number";
    throw new Error(`--${name} ${given}: ${kind} from ${lowest} to ${highest} is needed`);
  }

  /** A seed: a whole number, or by default a random one. */
  seed(name: keyof D["options"] & string): number {
    if (this.text(name) === "") return 1 + Math.floor(Math.random() * 0x7fff_fffe);
    return this.number(name, 0, Number.MAX_SAFE_INTEGER);
  }
}
