/** From a command line, an environment and files to what the process is to do. */

import { ConfigError } from "@quorate/member";
import type { ConfigFile } from "./config-file.ts";
import { helpText } from "./help.ts";
import { applyMapping } from "./mapping.ts";
import { resolveConfig, type Surroundings } from "./resolve.ts";
import type { Notice, ServerConfig } from "./server-config.ts";
import { applyFlags, applyVariables, readCommandLine, Settings, setVariables } from "./settings.ts";
import type { ReadFile } from "./tls.ts";

/** What the command line requests. */
export type Invocation =
  | { readonly kind: "help"; readonly text: string }
  | { readonly kind: "version" }
  | Run;

/** A member is to run. */
export interface Run {
  readonly kind: "run";
  readonly config: ServerConfig;
  /** To be logged, in order, once the logger stands. */
  readonly notices: readonly Notice[];
}

/**
 * Reads the configuration. With --config-file (or ETCD_CONFIG_FILE) the file alone counts, as in
 * etcd; else flags and ETCD_* variables. Nothing is written, and only the config file and TLS files
 * are read. Throws ConfigError, whose message is for the operator.
 * @param argv the arguments without the program's name
 * @param readFile returns a file's text or throws with the system's reason
 * @param defaultHost the machine's own address towards others, asked only where a member listens on
 * 0.0.0.0
 */
export async function loadConfig(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  readFile: ReadFile,
  defaultHost?: () => string | undefined,
): Promise<Invocation> {
  const line = readCommandLine(argv);
  if (line.help) return { kind: "help", text: helpText() };
  if (line.version) return { kind: "version" };
  const surroundings: Surroundings = {
    readFile,
    ...(defaultHost === undefined ? {} : { defaultHost }),
  };
  const settings = new Settings();
  const path = line.configFile || env["ETCD_CONFIG_FILE"] || "";
  if (path === "") {
    applyFlags(settings, line);
    applyVariables(settings, line, env);
  } else {
    let text: string;
    try {
      text = readFile(path);
    } catch (error) {
      throw new ConfigError(
        "BadFile",
        `cannot read the configuration file ${path}: ${(error as Error).message}`,
      );
    }
    // Only a start with a file loads the YAML parser.
    const { applyFile } = await import("./yaml-file.ts");
    applyFile(settings, path, text);
    const ignored = [...line.flags.map((flag) => `--${flag.name}`), ...setVariables(env)];
    settings.notices.unshift({
      level: ignored.length > 0 ? "warn" : "info",
      msg: "loaded server configuration, other configuration command line flags and environment variables will be ignored if provided",
      fields: ignored.length > 0 ? { path, ignored } : { path },
    });
  }
  const config = resolveConfig(settings, surroundings, path !== "");
  return { kind: "run", config, notices: settings.notices };
}

/**
 * Reads a configuration that is an object in the form of the config file. Only TLS files are read.
 * Throws ConfigError with the texts of a file.
 * @param where stands in messages in place of the file's path
 */
export function configOfObject(content: ConfigFile, where: string, readFile: ReadFile): Run {
  const settings = new Settings();
  applyMapping(settings, where, content);
  const config = resolveConfig(settings, { readFile }, true);
  return { kind: "run", config, notices: settings.notices };
}
