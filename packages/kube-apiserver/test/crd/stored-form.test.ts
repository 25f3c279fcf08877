/** Definitions are stored as kube-apiserver 1.36.3 stored one (stored-definition.json). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import type { KubeObject } from "@quorate/kube-storage";
import { crdCodec } from "../../src/crd/runtime.ts";
import { CrdWorld, conditionStatus, until } from "../support/crd-world.ts";
import { definition } from "./cases.ts";

const recorded = JSON.parse(
  readFileSync(new URL("stored-definition.json", import.meta.url), "utf8"),
) as { served: KubeObject; stored: KubeObject };

function utf8(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

describe("stored definitions", () => {
  test("what is written is what kube-apiserver writes", () => {
    const bytes = crdCodec.encode(recorded.served);
    assert.deepEqual(JSON.parse(new TextDecoder().decode(bytes)), recorded.stored);
  });

  test("what kube-apiserver wrote is read", () => {
    const { resourceVersion: _, ...metadata } = recorded.served.metadata;
    const read = crdCodec.decode(utf8(recorded.stored));
    assert.deepEqual(read, { ...recorded.served, metadata });
  });

  test("v1 is read, too, and other bytes are refused", () => {
    assert.deepEqual(crdCodec.decode(utf8(recorded.served)), recorded.served);
    assert.throws(() => crdCodec.decode(utf8("x")), TypeError);
  });
});

describe("several API servers", () => {
  test("a definition is established after the others had time to follow", async () => {
    const world = await CrdWorld.open({ establishDelayMs: 1500 });
    try {
      const crd = definition("later", { type: "object" });
      await world.create("customresourcedefinitions", crd, "v1", "");
      const accepted = await until(async () => {
        const one = await world.crd("later.recorded.example");
        return conditionStatus(one, "NamesAccepted") === "True" ? one : undefined;
      });
      assert.equal(conditionStatus(accepted, "Established"), "False");
      assert.ok(world.find("later"), "it is served before");
      await world.untilEstablished("later.recorded.example");
    } finally {
      await world.close();
    }
  });
});
