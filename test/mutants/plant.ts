/**
 * Loaded before a test file (--import): plants the mutant that QUORATE_MUTANT names by its place in
 * the list, in this thread.
 */
import { registerHooks } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const text = process.env["QUORATE_MUTANT"];
if (text !== undefined) {
  const { file, place, after } = JSON.parse(text) as {
    file: string;
    place: string;
    after: string;
  };
  const path = join(import.meta.dirname, "../../packages", file);
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      if (!url.startsWith("file:") || fileURLToPath(url) !== path) return loaded;
      const source =
        typeof loaded.source === "string"
          ? loaded.source
          : new TextDecoder().decode(loaded.source as Uint8Array);
      if (source.split(new RegExp(place)).length !== 2)
        throw new Error(`the mutant's place is not in packages/${file} exactly once`);
      return { ...loaded, source: source.replace(new RegExp(place), () => after) };
    },
  });
}
