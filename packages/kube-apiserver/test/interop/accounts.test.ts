/** Pods run as the service accounts that they have with kube-apiserver 1.36. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { DEFAULT_PLUGINS } from "../../src/admission/plugin-names.ts";
import { play } from "./accounts/play.ts";
import { keptAnswers, onOurs } from "./comparison.ts";

test("Service accounts of pods have kube-apiserver's answers", async () => {
  const kept = keptAnswers(join(import.meta.dirname, "accounts"));
  assert.ok(kept.length > 25);
  const plugins = new Set(DEFAULT_PLUGINS);
  assert.deepEqual(await onOurs({ plugins, controllers: [] })(play), kept);
});
