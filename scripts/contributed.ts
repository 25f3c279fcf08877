/**
 * Parts of packages that tools of the whole tree use. A package has them as files of its tests, and
 * the tool finds them, so that a package can be taken out without a change of the tool:
 *
 *     test/commands.ts    programs of `./dev`
 *     test/path.ts        requests of `./dev path`
 *     test/mutants.ts     bugs of `./dev mutants`
 *     test/parsers.ts     parsers of `./dev attack parsers`
 *     test/attack.ts      servers of `./dev attack linear`
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const PACKAGES = join(import.meta.dirname, "../packages");

/** The files, by their names in the folder `test` of a package. */
export const CONTRIBUTIONS = ["commands", "path", "mutants", "parsers", "attack"] as const;

/** Packages that nothing but one line of the program needs. */
const REMOVABLE = ["kube-apiserver"];

/** The packages of REMOVABLE that are not there. */
export const REMOVED: readonly string[] = REMOVABLE.filter(
  (name) => !existsSync(join(PACKAGES, name)),
);

/** @param path from the root of the repository */
export function isRemoved(path: string): boolean {
  return REMOVED.some(
    (name) => path.startsWith(`packages/${name}/`) || path === `packages/${name}`,
  );
}

/** The modules of that name, in the order of their packages' names. */
export async function contributed<T>(name: (typeof CONTRIBUTIONS)[number]): Promise<T[]> {
  const files = readdirSync(PACKAGES)
    .sort()
    .map((one) => join(PACKAGES, one, `test/${name}.ts`));
  return Promise.all(
    files.filter((file) => existsSync(file)).map((file) => import(pathToFileURL(file).href)),
  );
}
