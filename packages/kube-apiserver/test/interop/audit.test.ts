/** The audit log of 33 requests has kube-apiserver's lines: its stored ones are compared. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { auditOptions, keptEvents } from "./audit/kept.ts";
import { eventsOf } from "./audit/play.ts";
import { auditedRequests } from "./audit/requests.ts";

test("The audit log has kube-apiserver's lines", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "audit-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  await using api = await startApiServer(auditOptions(dir));
  const headers = { authorization: "Bearer admin-token" };
  const ours = await eventsOf({ url: api.url, headers }, join(dir, "audit.log"));
  const kept = keptEvents();
  assert.equal(kept.length, auditedRequests.length);
  for (const [at, { method, path }] of auditedRequests.entries())
    assert.deepEqual(ours[at], kept[at], `${method} ${path}`);
});
