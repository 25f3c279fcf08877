/** Builds the documentation site: its source in a temporary directory, then VitePress. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "vitepress";
import { ROOT } from "../dev/commands.ts";
import { CONFIG_FILE } from "./config.ts";
import { writeSource } from "./pages.ts";

/**
 * Builds the site into a directory. Rejects if a link leads nowhere.
 *
 * @param outDir an absolute path; what was there is replaced
 */
export async function buildSite(outDir: string): Promise<void> {
  // Within the repository, where Node finds the packages that the pages' code imports.
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  const directory = mkdtempSync(join(ROOT, "dist/site-source-"));
  try {
    writeSource(ROOT, directory);
    mkdirSync(join(directory, ".vitepress"));
    writeFileSync(
      join(directory, ".vitepress/config.mjs"),
      `import { siteConfig } from ${JSON.stringify(CONFIG_FILE)};\n` +
        `export default siteConfig(${[ROOT, directory, outDir].map((path) => JSON.stringify(path)).join(", ")});\n`,
    );
    await build(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
