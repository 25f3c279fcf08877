/**
 * The content of a config file, or an object in its form: the flags' names as keys, and TLS
 * settings nested. yaml-file.ts reads the file.
 */

import { ConfigError, parseBool, ValueError } from "@quorate/member";
import { defined, quoteText } from "@quorate/proto";
import { optionByFileKey, options } from "./options.ts";
import { flagsOfGates, retiredFlags } from "./retired.ts";
import type { Settings } from "./settings.ts";
import { nearest } from "./suggest.ts";

function nestedPrefixes(): Set<string> {
  const prefixes = new Set<string>();
  for (const key of optionByFileKey.keys()) {
    for (let at = key.indexOf("."); at >= 0; at = key.indexOf(".", at + 1))
      prefixes.add(key.slice(0, at));
  }
  return prefixes;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Sets what the content says. `where` only stands in messages. A key without a value counts as
 * absent. Unknown keys are refused, with the nearest known one: etcd passes over them, and a
 * mistyped "client-cert-auth" then leaves a server open. Throws ConfigError.
 */
export function applyMapping(settings: Settings, where: string, content: unknown): void {
  const failure = (detail: string): ConfigError =>
    new ConfigError("BadFile", `${where}: ${detail}`);
  if (content === null || content === undefined) return;
  if (!isMapping(content)) throw failure("expected keys with values");
  const prefixes = nestedPrefixes();

  const walk = (mapping: Record<string, unknown>, prefix: string): void => {
    for (const [part, value] of Object.entries(mapping)) {
      const key = prefix + part;
      if (value === null || value === undefined) {
        if (!isKnown(key)) throw unknown(key);
      } else if (prefixes.has(key)) {
        if (!isMapping(value)) throw failure(`invalid ${key}: expected nested keys`);
        walk(value, `${key}.`);
      } else {
        assign(key, value);
      }
    }
  };
  const isKnown = (key: string): boolean =>
    optionByFileKey.has(key) || flagsOfGates.has(key) || retiredFlags.has(key) || prefixes.has(key);
  const unknown = (key: string): ConfigError => {
    const near = nearest(key, optionByFileKey.keys());
    return failure(
      `unknown key ${quoteText(key)}${near === undefined ? "" : ` (did you mean ${quoteText(near)}?)`}`,
    );
  };
  const assign = (key: string, value: unknown): void => {
    const option = optionByFileKey.get(key);
    const gate = flagsOfGates.get(key);
    const retired = retiredFlags.get(key);
    try {
      if (option !== undefined) {
        if (defined(options.get(option), "the option").aliases.includes(key))
          settings.renamed(key, option);
        settings.set(option, defined(options.get(option), "the option").fromFile(value));
      } else if (gate !== undefined) {
        settings.renamed(key, `feature-gates=${gate}`);
        settings.gates.push(
          `${gate}=${typeof value === "boolean" ? value : parseBool(String(value))}`,
        );
      } else if (retired !== undefined) {
        settings.retired(key, retired.why);
      } else {
        throw unknown(key);
      }
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      throw failure(
        `invalid value ${quoteText(typeof value === "string" ? value : JSON.stringify(value))} for ${key}: ${error.message}`,
      );
    }
  };
  walk(content, "");
}
