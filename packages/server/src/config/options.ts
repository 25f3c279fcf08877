/** All options of the server, by flag name, in the order of --help. */
import type { Option } from "./option.ts";
import { auditOptions } from "./options-audit.ts";
import { clusterOptions } from "./options-cluster.ts";
import { memberOptions } from "./options-member.ts";
import {
  featureOptions,
  loggingOptions,
  monitoringOptions,
  tracingOptions,
  unsafeOptions,
} from "./options-operations.ts";
import { authOptions, securityOptions } from "./options-security.ts";
import { tokenOptions } from "./options-tokens.ts";
import { flagsOfGates, retiredFlags } from "./retired.ts";

/** The options under where they stand in --help and in the docs, in this order. */
const byGroup = {
  Member: memberOptions,
  Clustering: clusterOptions,
  Security: securityOptions,
  Auth: { ...authOptions, ...tokenOptions },
  "Profiling and Monitoring": monitoringOptions,
  Logging: loggingOptions,
  "Audit log": auditOptions,
  "Distributed tracing": tracingOptions,
  Features: featureOptions,
  "Unsafe features": unsafeOptions,
};

export type Group = keyof typeof byGroup;
export const groups = Object.keys(byGroup) as readonly Group[];

type Groups = typeof byGroup;
type Declared = Groups["Member"] &
  Groups["Clustering"] &
  Groups["Security"] &
  Groups["Auth"] &
  Groups["Profiling and Monitoring"] &
  Groups["Logging"] &
  Groups["Audit log"] &
  Groups["Distributed tracing"] &
  Groups["Features"] &
  Groups["Unsafe features"];

/** The flag names of all options. */
export type OptionName = keyof Declared;

/** The value of every option, typed as declared. */
export type OptionValues = {
  readonly [K in OptionName]: Declared[K] extends Option<infer T> ? T : never;
};

/** The fields of ServerConfig that are options' values as they are, named by the declarations. */
export type PlainConfig = {
  readonly [K in OptionName as Declared[K] extends Option<unknown, infer F extends string>
    ? F
    : never]: OptionValues[K];
};

/** Fills the plain fields. */
export function plainFields(values: OptionValues): PlainConfig {
  const fields: Record<string, unknown> = {};
  for (const [name, { field, zeroMeans }] of options) {
    if (field === undefined) continue;
    fields[field] = values[name] === 0 ? (zeroMeans ?? 0) : values[name];
  }
  return fields as PlainConfig;
}

/** An option with its group, and its key in the config file filled in. */
export type NamedOption = Option<unknown> & { readonly group: Group; readonly fileKey: string };

/** Every option under its flag name. */
export const options: ReadonlyMap<OptionName, NamedOption> = new Map(
  groups.flatMap((group) =>
    (Object.entries(byGroup[group]) as [OptionName, Option<unknown>][]).map(([name, option]) => [
      name,
      { ...option, group, fileKey: option.fileKey ?? name },
    ]),
  ),
);

/** The ETCD_* variable of a flag. */
export function variableName(flag: string): string {
  return `ETCD_${flag.toUpperCase().replaceAll("-", "_")}`;
}

function gather(): { byFlag: Map<string, OptionName>; byFileKey: Map<string, OptionName> } {
  const byFlag = new Map<string, OptionName>();
  const byFileKey = new Map<string, OptionName>();
  const claim = (map: Map<string, OptionName>, key: string, name: OptionName): void => {
    if (map.has(key) || retiredFlags.has(key) || flagsOfGates.has(key))
      throw new Error(`option ${key} is declared twice`);
    map.set(key, name);
  };
  for (const [name, option] of options) {
    option.parse(option.defaultText);
    claim(byFlag, name, name);
    for (const alias of option.aliases) claim(byFlag, alias, name);
    claim(byFileKey, option.fileKey, name);
    for (const alias of option.aliases) claim(byFileKey, alias, name);
  }
  return { byFlag, byFileKey };
}

const gathered = gather();

/** The option behind a flag, also under the names that it had before. */
export const optionByFlag: ReadonlyMap<string, OptionName> = gathered.byFlag;

/** The option behind a key of the config file; nested keys are joined by dots. */
export const optionByFileKey: ReadonlyMap<string, OptionName> = gathered.byFileKey;
