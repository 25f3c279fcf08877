/**
 * The files of the page, read once. In a release they are part of the bundle: scripts/release has
 * this module's export made from the same folder.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const DIRECTORY = join(import.meta.dirname, "../page");

/** The text of each file, by its name. */
export const pageFiles: ReadonlyMap<string, string> = new Map(
  readdirSync(DIRECTORY).map((name) => [name, readFileSync(join(DIRECTORY, name), "utf8")]),
);
