/** The config file: YAML, with its content in the form of mapping.ts. Loaded where there is one. */
import { ConfigError } from "@quorate/member";
import { CORE_SCHEMA, load } from "js-yaml";
import { applyMapping } from "./mapping.ts";
import type { Settings } from "./settings.ts";

/** What the library throws; lines count from 0. */
interface YamlFailure extends Error {
  readonly reason?: string;
  readonly mark?: { readonly line: number };
}

/** Sets what the file says (applyMapping). `path` only stands in messages. Throws ConfigError. */
export function applyFile(settings: Settings, path: string, text: string): void {
  let content: unknown;
  try {
    content = load(text, { schema: CORE_SCHEMA });
  } catch (error) {
    const { reason, mark, message } = error as YamlFailure;
    const detail = mark === undefined ? message : `${reason} at line ${mark.line + 1}`;
    throw new ConfigError("BadFile", `${path}: ${detail}`);
  }
  applyMapping(settings, path, content);
}
