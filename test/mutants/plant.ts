/**
 * Loaded before a test file (--import): plants the mutant that QUORATE_MUTANT holds as JSON, in
 * this thread.
 */
import { join } from "node:path";
import { changeSource, countPlaces, replacePlaces } from "@quorate/host/testing";

const text = process.env["QUORATE_MUTANT"];
if (text !== undefined) {
  const { file, before, after } = JSON.parse(text) as {
    file: string;
    before: string;
    after: string;
  };
  changeSource(join(import.meta.dirname, "../../packages", file), (source) => {
    if (countPlaces(source, before) !== 1)
      throw new Error(`the mutant's place is not in packages/${file} exactly once`);
    return replacePlaces(source, before, after);
  });
}
