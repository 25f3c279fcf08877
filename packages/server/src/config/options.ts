/** All options of the server, by flag name, in the order of --help. */
import type { Option } from "./option.ts";
import { auditOptions } from "./options-audit.ts";
import { clusterOptions } from "./options-cluster.ts";
import { memberOptions } from "./options-member.ts";
import { operationsOptions } from "./options-operations.ts";
import { securityOptions } from "./options-security.ts";
import { tokenOptions } from "./options-tokens.ts";
import { flagsOfGates, retiredFlags } from "./retired.ts";

const declared = {
  ...memberOptions,
  ...clusterOptions,
  ...securityOptions,
  ...tokenOptions,
  ...auditOptions,
  ...operationsOptions,
};

/** The flag names of all options. */
export type OptionName = keyof typeof declared;

/** The value of every option, typed as declared. */
export type OptionValues = {
  readonly [K in OptionName]: (typeof declared)[K] extends Option<infer T> ? T : never;
};

/** The fields of ServerConfig that are options' values as they are, named by the declarations. */
export type PlainConfig = {
  readonly [K in OptionName as (typeof declared)[K] extends Option<unknown, infer F extends string>
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

/** An option whose key in the config file is filled in. */
export type NamedOption = Option<unknown> & { readonly fileKey: string };

/** Every option under its flag name. */
export const options: ReadonlyMap<OptionName, NamedOption> = new Map(
  (Object.entries(declared) as [OptionName, Option<unknown>][]).map(([name, option]) => [
    name,
    { ...option, fileKey: option.fileKey ?? name },
  ]),
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
