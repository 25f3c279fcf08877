import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { RareLog } from "../src/rare-log.ts";
import { majorMinor, refuseVersions } from "../src/version.ts";

describe("a rare log", () => {
  it("says a thing again only after a while, and remembers no more than it can", () => {
    const clock = new ManualClock();
    const log = new RareLog(clock);
    assert.ok(log.allows("a"));
    assert.ok(!log.allows("a"));
    assert.ok(log.allows("b"));
    assert.ok(!log.allows("a"), "not forgotten for another one");
    clock.advance(30_000);
    assert.ok(log.allows("a"));
    for (let i = 0; i < 300; i++) assert.ok(log.allows(`key ${i}`));
    assert.ok(log.allows("a"), "forgotten with the others");
  });
});

describe("versions", () => {
  it("work together when neither is too low for the other", () => {
    const local = { server: "3.7.0", minCluster: "3.6.0" };
    const cases: [string, string, string | undefined][] = [
      ["3.7.0", "3.6.0", undefined],
      ["3.7.5-rc.1", "3.7.0", undefined],
      ["3.6.9", "3.0.0", undefined],
      ["3.5.9", "3.0.0", "remote version is too low: remote=3.5.9, local=3.7.0"],
      ["2.3.0", "2.0.0", "remote version is too low: remote=2.3.0, local=3.7.0"],
      ["3.8.0", "3.8.0", "local version is too low: remote=3.8.0, local=3.7.0"],
      ["4.0.0", "3.7.0", undefined],
    ];
    for (const [server, minCluster, reason] of cases)
      assert.equal(refuseVersions(local, { server, minCluster }), reason, server);
    assert.match(
      String(refuseVersions(local, { server: "", minCluster: "3.0.0" })),
      /cannot be read/,
    );
    assert.deepEqual(majorMinor("v3.10.2+build"), [3, 10]);
    assert.equal(majorMinor("3"), undefined);
  });
});
