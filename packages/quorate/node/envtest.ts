/**
 * `quorate envtest`: a directory for KUBEBUILDER_ASSETS, in which one file is kube-apiserver and
 * etcd by the name it is called.
 *
 *     KUBEBUILDER_ASSETS=$(npx quorate envtest --path) go test ./...
 */
import { createHash } from "node:crypto";
import {
  accessSync,
  constants,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import type { Command, Invocation } from "@quorate/cli";
import { boolFlag, textFlag } from "@quorate/cli";

/** Names the process whose end ends this one (main.ts). */
export const PARENT_VARIABLE = "QUORATE_PARENT_PID";

/**
 * The file. Its controllers are off, as there are none in envtest; --controllers=* among the flags
 * of envtest's API server turns them on.
 * @param start words for the shell that start quorate
 * @param before lines for the shell that come first
 */
export function envtestScript(start: string, before = ""): string {
  return `#!/bin/sh
# kube-apiserver and etcd for envtest, by the name it is called. It ends when its parent does.
${before}export ${PARENT_VARIABLE}=$PPID
case $0 in
*etcd) exec ${start} "$@" ;;
*) exec ${start} apiserver --controllers= "$@" ;;
esac
`;
}

/**
 * Makes the directory below `home`, or finds it as it was made. It has kubectl, too, where that is
 * on the PATH.
 * @param start Node, its flags, and the program
 */
export function envtestDirectory(home: string, start: readonly string[]): string {
  const script = envtestScript(start.map(quoted).join(" "));
  const directory = join(
    home,
    `envtest-${createHash("sha256").update(script).digest("hex").slice(0, 12)}`,
  );
  const server = join(directory, "kube-apiserver");
  if (textOf(server) === script && textOf(join(directory, "etcd")) === script) return directory;
  // Others may make it at the same time: each file appears whole.
  const made = `${directory}.${process.pid}`;
  rmSync(made, { recursive: true, force: true });
  mkdirSync(made, { recursive: true });
  writeFileSync(join(made, "kube-apiserver"), script, { mode: 0o755 });
  linkSync(join(made, "kube-apiserver"), join(made, "etcd"));
  const kubectl = onPath("kubectl");
  if (kubectl !== undefined) symlinkSync(kubectl, join(made, "kubectl"));
  rmSync(directory, { recursive: true, force: true });
  try {
    renameSync(made, directory);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    if (textOf(server) !== script) throw error;
  }
  return directory;
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function onPath(name: string): string | undefined {
  const directories = (process.env["PATH"] ?? "").split(delimiter).filter((one) => one !== "");
  return directories
    .map((one) => join(one, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

export const envtest: Command = {
  use: "envtest",
  short: "make a directory with kube-apiserver and etcd, for KUBEBUILDER_ASSETS",
  long: `One file in it is both, by the name it is called; kubectl is there where it is on the PATH. Prints a
line for a shell, or with --path the directory alone. The processes end when the one that started them
has ended.`,
  flags: {
    path: boolFlag("print the directory alone"),
    dir: textFlag("where it is made (default: the user's cache)"),
  },
  run: async ({ flags, io }: Invocation) => {
    const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
    const start = [process.execPath, ...process.execArgv, ...process.argv.slice(1, 2)];
    const directory = envtestDirectory(flags.string("dir") || join(cache, "quorate"), start);
    io.stdout(
      flags.bool("path") ? `${directory}\n` : `export KUBEBUILDER_ASSETS=${quoted(directory)}\n`,
    );
  },
};
