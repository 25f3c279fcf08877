/**
 * Names of CommonJS packages for `await import`. esbuild puts such a package into a file that
 * exports only its default; Node, which runs the sources, offers the names too. So an import that
 * is made when it is needed goes through a module that exports each name.
 */
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
// @peculiar/x509 asks for it when it loads.
import "reflect-metadata";
import type { Plugin } from "esbuild";
import { root } from "./programs.ts";

const NAMESPACE = "named-exports";
/** Set on esbuild's own search for the package, so that it is not intercepted again. */
const INSIDE = { isInside: true };
const NAME = /^[A-Za-z_$][\w$]*$/;

/**
 * The names that Node offers for a CommonJS file, without its default; undefined for a module. The
 * file is loaded in this process.
 */
async function namesOf(path: string): Promise<string[] | undefined> {
  const loaded = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  if (!("module.exports" in loaded)) return undefined;
  return Object.keys(loaded).filter((name) => NAME.test(name) && name !== "default");
}

export const namedExports: Plugin = {
  name: "named exports",
  setup(build) {
    build.onResolve({ filter: /^[a-z@]/ }, async ({ path, kind, resolveDir, pluginData }) => {
      if (kind !== "dynamic-import" || pluginData === INSIDE || path.startsWith("node:"))
        return undefined;
      const found = await build.resolve(path, { kind, resolveDir, pluginData: INSIDE });
      const isFile = found.errors.length === 0 && !found.external;
      if (!isFile || !found.path.includes("node_modules") || !/\.c?js$/.test(found.path))
        return undefined;
      const names = await namesOf(found.path);
      if (names === undefined) return undefined;
      // esbuild notes the path in the bundle, so it must not depend on where that was made.
      return { path: relative(root, found.path), namespace: NAMESPACE, pluginData: names };
    });
    build.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path, pluginData }) => {
      const names = (pluginData as readonly string[]).join(", ");
      const from = JSON.stringify(join(root, path));
      const contents = `import it from ${from};\nexport default it;\nexport const { ${names} } = it;`;
      return { contents, resolveDir: root };
    });
  },
};
