/** Modules that are loaded with another source than their file has: planted bugs. */
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";

/**
 * From now on this thread loads the module in the file at `path` as `change` returns it. No file
 * changes. To be called before the module is loaded. @param change is given the file's text
 */
export function changeSource(path: string, change: (source: string) => string): void {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      if (!url.startsWith("file:") || fileURLToPath(url) !== path) return loaded;
      const { source } = loaded;
      const text =
        typeof source === "string" ? source : new TextDecoder().decode(source as Uint8Array);
      return { ...loaded, source: change(text) };
    },
  });
}
