/** docs/guide/fencing.md: its example runs, and says what the page says that it says. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { withCluster } from "../support/cluster.ts";

test("the example of docs/guide/fencing.md", async () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/guide/fencing.md"), "utf8");
  const block = (language: string) =>
    new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "m").exec(page)![1];
  const dir = mkdtempSync(join(tmpdir(), "quorate-fencing-"));
  const path = join(dir, "example.ts");
  try {
    // Its imports are looked up from where it is.
    symlinkSync(join(import.meta.dirname, "../../node_modules"), join(dir, "node_modules"));
    writeFileSync(join(dir, "package.json"), '{ "type": "module" }');
    writeFileSync(path, block("ts"));
    const { main } = (await import(path)) as { main: (endpoints: string[]) => Promise<string[]> };
    await withCluster({ size: 3 }, async (cluster) => {
      assert.deepEqual(await main(cluster.endpoints), block("text").trimEnd().split("\n"));
    });
  } finally {
    rmSync(dir, { recursive: true });
  }
});
