/** The programs as a release installs them, for figures that users see. */
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundlePrograms, NATIVE_MODULE } from "../scripts/release/bundle.ts";
import { launcherText } from "../scripts/release/launcher.ts";
import { nativeModule, ownPlatform } from "../scripts/release/platform.ts";
import { releasePrograms } from "../scripts/release/programs.ts";

/**
 * Installs the programs in `dir` as a release does, but with a link to this process's Node; returns
 * the directory of the commands.
 */
export async function install(dir: string): Promise<string> {
  if (ownPlatform === undefined)
    throw new Error(`there is no release for ${process.platform}-${process.arch}`);
  const programs = releasePrograms();
  for (const directory of ["bin", "lib"]) mkdirSync(join(dir, directory));
  for (const [name, content] of (await bundlePrograms(programs)).files)
    writeFileSync(join(dir, "lib", name), content);
  writeFileSync(join(dir, "lib", NATIVE_MODULE), nativeModule(ownPlatform));
  symlinkSync(process.execPath, join(dir, "lib/node"));
  for (const program of programs) {
    const path = join(dir, "bin", program.name);
    writeFileSync(path, launcherText(program, ownPlatform, "lib/shared"));
    chmodSync(path, 0o755);
  }
  return join(dir, "bin");
}
