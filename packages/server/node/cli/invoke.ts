/**
 * The command line of `quorate`: what is printed, and with which code the process ends, if no
 * member is to be started.
 */
import { ConfigError } from "@quorate/member";
import { type Invocation, loadConfig } from "../../src/config/load.ts";
import { defaultHost, readTextFile } from "./surroundings.ts";

/** The versions that --version prints. */
export interface Versions {
  /** This program's own. */
  readonly quorate: string;
  /** The etcd release whose API is served. */
  readonly etcd: string;
}

/** Where the command line writes. */
export interface Output {
  stdout(text: string): void;
  stderr(text: string): void;
}

/**
 * Either a member to start or the code to end with; everything to be said about the latter has been
 * printed.
 */
export type Invoked =
  | Extract<Invocation, { kind: "run" }>
  | { readonly kind: "exit"; readonly code: number };

/**
 * Reads a command line and answers --help, --version and mistakes by itself.
 * @param argv the arguments without the program's name
 */
export async function invoke(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  versions: Versions,
  output: Output,
): Promise<Invoked> {
  try {
    const invocation = await loadConfig(argv, env, readTextFile, defaultHost);
    if (invocation.kind === "run") return invocation;
    output.stdout(invocation.kind === "help" ? invocation.text : versionText(versions));
    return { kind: "exit", code: 0 };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    output.stderr(`quorate: ${error.message}\n`);
    if (error.code === "BadFlag") output.stderr("Run quorate --help for the flags.\n");
    return { kind: "exit", code: error.exitCode };
  }
}

function versionText(versions: Versions): string {
  return [
    `quorate Version: ${versions.quorate}`,
    `etcd Version: ${versions.etcd}`,
    `Node Version: ${process.version}`,
    `Node OS/Arch: ${process.platform}/${process.arch}`,
    "",
  ].join("\n");
}
