/**
 * What was set where: the command line, ETCD_* variables and the config file all end in one
 * Settings. Flags are read as Go's flag package reads them (one dash or two, "-name value" and
 * "-name=value", a boolean's value only after "=", the last of repeated flags wins), which general
 * libraries do not do: they take "-name" for four short flags and "--flag false" for a flag with a
 * value.
 */

import { ConfigError, parseBool, ValueError } from "@quorate/member";
import { defined, quoteText } from "@quorate/proto";
import {
  type OptionName,
  type OptionValues,
  optionByFlag,
  options,
  variableName,
} from "./options.ts";
import { flagsOfGates, retiredFlags } from "./retired.ts";
import type { Notice } from "./server-config.ts";
import { nearest } from "./suggest.ts";

/** Collects values, each already of its option's type. */
export class Settings {
  readonly #values = new Map<OptionName, unknown>();
  /** Gates set by flags that became gates, as "Name=true". */
  readonly gates: string[] = [];
  readonly notices: Notice[] = [];

  /** Sets an option; a later value replaces an earlier one. */
  set(name: OptionName, value: unknown): void {
    this.#values.set(name, value);
  }

  /** Whether the option was given at all. */
  isSet(name: OptionName): boolean {
    return this.#values.has(name);
  }

  /** The value of every option, given or default. */
  values(): OptionValues {
    const all = [...options].map(([name, option]) => [
      name,
      this.#values.has(name) ? this.#values.get(name) : option.parse(option.defaultText),
    ]);
    return Object.fromEntries(all) as OptionValues;
  }

  warn(msg: string, fields: Notice["fields"]): void {
    this.notices.push({ level: "warn", msg, fields });
  }

  /** Notes that an old name was used. */
  renamed(old: string, now: string): void {
    this.warn("an option was given under an old name", { "old-name": old, name: now });
  }

  /** Notes that a name without effect was used. */
  retired(name: string, why: string): void {
    this.warn("option has no effect", { option: name, reason: why });
  }
}

/** Flags that steer the command itself and are not part of a member's configuration. */
export const commandFlags = ["config-file", "version", "help", "h"] as const;

/** One flag of the command line with its text. */
interface GivenFlag {
  readonly name: string;
  readonly text: string;
}

/** A command line, taken apart but not yet understood. */
export interface CommandLine {
  readonly help: boolean;
  readonly version: boolean;
  /** Empty if not given. */
  readonly configFile: string;
  readonly flags: readonly GivenFlag[];
}

function isBoolFlag(name: string): boolean {
  const option = optionByFlag.get(name);
  if (option !== undefined) return defined(options.get(option), "the option").kind === "bool";
  return name === "version" || flagsOfGates.has(name) || retiredFlags.get(name)?.bool === true;
}

function isKnown(name: string): boolean {
  return (
    optionByFlag.has(name) ||
    flagsOfGates.has(name) ||
    retiredFlags.has(name) ||
    (commandFlags as readonly string[]).includes(name)
  );
}

/**
 * Takes the arguments (without the program's name) apart. Throws ConfigError for what is no flag or
 * not a known one.
 */
export function readCommandLine(argv: readonly string[]): CommandLine {
  const flags: GivenFlag[] = [];
  let version = false;
  let configFile = "";
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i] ?? "";
    if (argument.length < 2 || argument[0] !== "-")
      throw new ConfigError("BadFlag", `${quoteText(argument)} is not a valid flag`);
    if (argument === "--") {
      const after = argv[i + 1];
      if (after !== undefined)
        throw new ConfigError("BadFlag", `${quoteText(after)} is not a valid flag`);
      break;
    }
    const body = argument.slice(argument[1] === "-" ? 2 : 1);
    if (body[0] === "-" || body[0] === "=")
      throw new ConfigError("BadFlag", `bad flag syntax: ${argument}`);
    const equals = body.indexOf("=");
    const name = equals < 0 ? body : body.slice(0, equals);
    if (name === "help" || name === "h") return { help: true, version, configFile, flags };
    if (!isKnown(name)) {
      const near = nearest(name, [...options.keys(), ...commandFlags]);
      throw new ConfigError(
        "BadFlag",
        `flag provided but not defined: --${name}${near === undefined ? "" : ` (did you mean --${near}?)`}`,
      );
    }
    let text: string | undefined;
    if (equals >= 0) text = body.slice(equals + 1);
    else if (isBoolFlag(name)) text = "true";
    else text = argv[++i];
    if (text === undefined) throw new ConfigError("BadFlag", `flag needs an argument: --${name}`);
    const value = text;
    if (name === "version") version = readValue(() => parseBool(value), value, "flag --version");
    else if (name === "config-file") configFile = value;
    else flags.push({ name, text: value });
  }
  return { help: false, version, configFile, flags };
}

function readValue<T>(read: () => T, text: string, where: string): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    const exitCode = where.startsWith("flag ") ? 2 : 1;
    throw new ConfigError(
      "BadValue",
      `invalid value ${quoteText(text)} for ${where}: ${error.message}`,
      exitCode,
    );
  }
}

/** Puts one text, from a flag or a variable, where it belongs. */
function assign(settings: Settings, name: string, text: string, where: string): void {
  const option = optionByFlag.get(name);
  if (option !== undefined) {
    if (option !== name) settings.renamed(name, option);
    settings.set(
      option,
      readValue(() => defined(options.get(option), "the option").parse(text), text, where),
    );
    return;
  }
  const gate = flagsOfGates.get(name);
  if (gate !== undefined) {
    settings.renamed(name, `feature-gates=${gate}`);
    const on = readValue(() => parseBool(text), text, where);
    settings.gates.push(`${gate}=${on}`);
    return;
  }
  settings.retired(name, defined(retiredFlags.get(name), "the retired flag").why);
}

/** Sets what the flags of a command line say. */
export function applyFlags(settings: Settings, line: CommandLine): void {
  for (const { name, text } of line.flags) assign(settings, name, text, `flag --${name}`);
}

/**
 * Variables that begin with ETCD_ and are not options. ETCD_VERIFY turns etcd's own assertions on;
 * here they are always on.
 */
const foreignVariables = new Set(["ETCD_UNSUPPORTED_ARCH", "ETCD_CONFIG_FILE", "ETCD_VERIFY"]);

/**
 * Sets what the ETCD_* variables say. A variable for a flag that was given is refused, as etcd
 * does: it could not have been meant. An empty variable counts as absent. Variables that are no
 * option are warned of, since a typing error would otherwise pass unseen.
 */
export function applyVariables(
  settings: Settings,
  line: CommandLine,
  env: Readonly<Record<string, string | undefined>>,
): void {
  const given = new Set(
    line.flags.map((flag) => variableName(optionByFlag.get(flag.name) ?? flag.name)),
  );
  const names = [...optionByFlag.keys(), ...flagsOfGates.keys(), ...retiredFlags.keys()];
  const byVariable = new Map(names.map((name) => [variableName(name), name]));
  for (const variable of Object.keys(env).sort()) {
    const text = env[variable];
    if (
      !variable.startsWith("ETCD_") ||
      text === undefined ||
      text === "" ||
      foreignVariables.has(variable)
    )
      continue;
    const name = byVariable.get(variable);
    if (name === undefined) {
      const near = nearest(variable, byVariable.keys());
      settings.warn("unrecognized environment variable", {
        "environment-variable": variable,
        ...(near === undefined ? {} : { nearest: near }),
      });
      continue;
    }
    if (given.has(variableName(optionByFlag.get(name) ?? name))) {
      throw new ConfigError(
        "Contradiction",
        `conflicting environment variable ${quoteText(variable)} is shadowed by corresponding command-line flag ` +
          "(either unset environment variable or disable flag)",
      );
    }
    assign(settings, name, text, variable);
    settings.notices.push({
      level: "info",
      msg: "recognized and used environment variable",
      fields: { "variable-name": variable, "variable-value": isSecret(name) ? "<hidden>" : text },
    });
  }
}

/** Options whose values do not belong into logs. */
function isSecret(name: string): boolean {
  return name === "discovery-password" || name === "discovery-user";
}

/** ETCD_* variables that are set, for the note that a config file put them aside. */
export function setVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.keys(env)
    .filter(
      (name) =>
        name.startsWith("ETCD_") &&
        env[name] !== undefined &&
        env[name] !== "" &&
        !foreignVariables.has(name),
    )
    .sort();
}
