/** Go's modules of other projects, from Go's module proxy. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
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
 * Where Go keeps a module's files, which nobody may change.
 * @param module such as "k8s.io/kubernetes@v1.36.3"
 * @returns its directory, or undefined where Go or its module proxy does not have it
 */
export function moduleDirectory(module: string): string | undefined {
  const found = go(["mod", "download", "-json", module], tmpdir(), { GOFLAGS: "" });
  return found.ok ? (JSON.parse(found.text) as { readonly Dir: string }).Dir : undefined;
}

/** A copy of a module in `directory` that tests may change; as `moduleDirectory` otherwise. */
export function moduleCopy(module: string, directory: string): string | undefined {
  const copy = join(directory, module.replaceAll(/[/@]/g, "-"));
  if (existsSync(copy)) return copy;
  const source = moduleDirectory(module);
  if (source === undefined) return undefined;
  cpSync(source, copy, { recursive: true });
  spawnSync("chmod", ["-R", "u+w", copy]);
  return copy;
}
