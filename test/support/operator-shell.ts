/** An operator's shell: quoratectl on PATH, variables exported, command lines run as they stand. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A directory with quoratectl under its name, as an installation puts it on PATH. */
function programs(dir: string): string {
  const bin = join(dir, "bin");
  mkdirSync(bin, { recursive: true });
  const program = join(import.meta.dirname, "../../bin/quoratectl.js");
  writeFileSync(join(bin, "quoratectl"), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`);
  chmodSync(join(bin, "quoratectl"), 0o755);
  return bin;
}

/**
 * Runs a command line with these variables exported. @param dir a directory of the caller's, for
 * the programs and as the home
 */
export async function shell(
  dir: string,
  line: string,
  env: Readonly<Record<string, string>>,
): Promise<{ code: number; output: string }> {
  const child = spawn("sh", ["-c", line], {
    env: { PATH: `${programs(dir)}:${process.env["PATH"]}`, HOME: dir, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (piece: Buffer) => (output += piece.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, output };
}
