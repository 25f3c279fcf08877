/** docs/fencing.md: its example runs, and says what the page says that it says. */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { withCluster } from "../support/cluster.ts";

test("the example of docs/fencing.md", async () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/fencing.md"), "utf8");
  const block = (language: string) => new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "m").exec(page)![1]!;
  // Here, because its imports are looked up from where it is.
  const path = join(import.meta.dirname, `.fencing-example-${process.pid}.ts`);
  writeFileSync(path, block("ts"));
  try {
    const { main } = (await import(path)) as { main: (endpoints: string[]) => Promise<string[]> };
    await withCluster({ size: 3 }, async (cluster) => {
      assert.deepEqual(await main(cluster.endpoints), block("text").trimEnd().split("\n"));
    });
  } finally {
    rmSync(path);
  }
});
