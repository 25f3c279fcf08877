/**
 * A write of the backend fails while the member has nothing else to write: a hash, a snapshot or
 * the history for a watch flush, too. The member ends as it does when its own flush fails.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HashKVRequest, MaintenanceService } from "@quorate/proto";
import { call, put, World } from "./support/world.ts";

test("a member ends when a hash finds that the backend takes no writes", async () => {
  const world = new World(1, ["--backend-batch-interval", "30s"]);
  await world.startAll();
  const [node] = world.nodes;
  const member = node.member!;
  await world.settled(put(member, "a", "1"));
  node.keyspaces.fault = () => "Io";
  const hash = call(member, MaintenanceService.methods.HashKV.path, HashKVRequest.encode({}));
  await assert.rejects(world.settled(hash), /injected at write/);
  // What failed is the last write that there was: nothing waits for a flush of the member's own.
  assert.equal(member.store.pendingOps, 0);
  await world.until(() => node.ended !== undefined);
  assert.match(String(node.ended!.error), /injected at write/);
});
