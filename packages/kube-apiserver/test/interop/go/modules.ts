/** Go's modules of other projects, from Go's module proxy. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";

/** Runs the program go to its end; what it prints on standard error is shown. */
export function go(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): { readonly ok: boolean; readonly text: string } {
  const { status, stdout, error } = spawnSync("go", args, {
    cwd,
    env: { ...process.env, GOFLAGS: "-mod=mod -p=1", ...env },
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 1 << 28,
  });
  return { ok: error === undefined && status === 0, text: stdout?.toString() ?? "" };
}

/**
 * A copy of a module that tests may change.
 * @param module such as "k8s.io/kubernetes@v1.36.3"
 * @returns its directory, or undefined where Go or its module proxy does not have it
 */
export function moduleCopy(module: string, directory: string): string | undefined {
  const copy = join(directory, module.replaceAll(/[/@]/g, "-"));
  if (existsSync(copy)) return copy;
  const found = go(["mod", "download", "-json", module], directory, { GOFLAGS: "" });
  if (!found.ok) return undefined;
  const { Dir } = JSON.parse(found.text) as { readonly Dir: string };
  cpSync(Dir, copy, { recursive: true });
  spawnSync("chmod", ["-R", "u+w", copy]);
  return copy;
}
