import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compareVersions } from "../../src/meta/kinds.ts";

describe("versions", () => {
  it("go from new to old", () => {
    const versions = ["v1alpha1", "other", "v2", "v1", "v1beta2", "v10", "v1beta10"];
    assert.deepEqual(versions.sort(compareVersions), [
      "v10",
      "v2",
      "v1",
      "v1beta10",
      "v1beta2",
      "v1alpha1",
      "other",
    ]);
  });
});
