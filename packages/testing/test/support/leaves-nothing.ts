/** A test file that is run by another one, which sees whether its process ends. */
import { test } from "node:test";
import { testCluster } from "../../index.ts";

const what = process.env["WHAT"];

test("a cluster with a watch that nobody closes", async () => {
  const cluster = await testCluster({ members: 3 });
  const client = cluster.client();
  await client.put("k", "v");
  void client
    .watch("k")
    .changes()
    .next()
    .catch(() => {});
  if (what === "throws") throw new Error("as it may happen");
  if (what === "ends") await cluster.close();
});
