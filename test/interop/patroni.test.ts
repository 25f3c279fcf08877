/**
 * PostgreSQL under Patroni, which keeps its leader in a cluster of ours through the JSON gateway,
 * with the commands and the configuration of docs/guide/patroni.md: the short part of the story.
 * With machines that die it takes minutes: ./dev clients patroni.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withCluster } from "../support/cluster.ts";
import { skipWithoutPatroni } from "./patroni/installed.ts";
import { Story } from "./patroni/story.ts";

test("Patroni initialises PostgreSQL, hands its primary over, and takes the old one back; no acknowledged row is lost", {
  skip: skipWithoutPatroni(),
}, async (t) => {
  await withCluster({ size: 3 }, async (cluster) => {
    const story = await Story.prepare({
      cluster,
      protocol: "etcd3",
      say: (line) => t.diagnostic(line),
    });
    try {
      await story.initialise();
      await story.stopThePrimary();
      await story.verdict();
      assert.ok(story.checks.count > 0);
    } catch (error) {
      console.error(story.logTails());
      throw error;
    } finally {
      await story.destroy();
    }
  });
});
