import assert from "node:assert/strict";
import { test } from "node:test";
import { qosClassOf } from "../../src/builtin/plain-kinds.ts";

type Resources = { limits?: Record<string, string>; requests?: Record<string, string> };

function classOf(...containers: Resources[]): string {
  return qosClassOf({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p" },
    spec: { containers: containers.map((resources) => ({ name: "c", resources })) },
  });
}

test("the class of service follows from limits and requests of all containers", () => {
  const full = { cpu: "500m", memory: "1Gi" };
  assert.equal(classOf({}), "BestEffort");
  assert.equal(classOf({ requests: { cpu: "0" } }), "BestEffort");
  assert.equal(classOf({ limits: full, requests: full }), "Guaranteed");
  assert.equal(classOf({ limits: full, requests: full }, {}), "Burstable");
  assert.equal(classOf({ limits: full, requests: { ...full, cpu: "100m" } }), "Burstable");
  assert.equal(classOf({ requests: { memory: "1Gi" } }), "Burstable");
});
