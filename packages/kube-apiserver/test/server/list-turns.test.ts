import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock, MemoryExchange } from "@quorate/host/testing";
import type { RestList, ServedResource, StoredObject } from "@quorate/kube-storage";
import { kindSource } from "@quorate/kube-storage";
import { Call } from "../../src/handlers/call.ts";
import type { Encoding } from "../../src/handlers/negotiation.ts";
import { sendList } from "../../src/handlers/send-list.ts";
import { Query, Target } from "../../src/handlers/target.ts";

const COUNT = 10_000;
/** What encoding one object takes on this test's clock. */
const OBJECT_MS = 0.05;

const source = kindSource("", "v1", "ConfigMap");
const resource = {
  group: "",
  version: "v1",
  resource: "configmaps",
  subresource: "",
  kind: source.kind,
  protobuf: source.protobuf,
} as unknown as ServedResource;

/** A clock whose time passes with each object that is encoded. */
class WorkClock extends ManualClock {
  workMs = 0;
  longestTurnMs = 0;
  #turnStartMs = 0;

  override monotonicMs(): number {
    return this.workMs;
  }

  override endOfTurn(task: () => void): void {
    this.endTurn();
    setImmediate(task);
  }

  endTurn(): void {
    this.longestTurnMs = Math.max(this.longestTurnMs, this.workMs - this.#turnStartMs);
    this.#turnStartMs = this.workMs;
  }
}

function objectsOn(clock: WorkClock): StoredObject[] {
  const bytes = new TextEncoder().encode('{"kind":"ConfigMap","apiVersion":"v1","metadata":{}}');
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" } };
  const work = <T>(value: T): T => {
    clock.workMs += OBJECT_MS;
    return value;
  };
  return Array.from({ length: COUNT }, (_, i) => ({
    key: `/configmaps/default/${i}`,
    resourceVersion: i,
    object: () => work(object),
    json: () => work(bytes),
  }));
}

describe("a list of 10,000 objects", () => {
  for (const encoding of ["json", "protobuf"] as Encoding[])
    it(`as ${encoding} leaves the event loop to others in between`, async () => {
      const clock = new WorkClock();
      const list: RestList = {
        items: objectsOn(clock),
        resourceVersion: "1",
        continueToken: "",
        remainingItemCount: undefined,
      };
      const exchange = new MemoryExchange({ path: "/api/v1/configmaps" });
      const query = new Query("");
      const target = Target.of("GET", "/api/v1/configmaps", query);
      const call = new Call(exchange, { target, query }, "id", 0);
      exchange.serve(() => call.listener);
      const newCompressor = () => assert.fail("the client does not take gzip");
      const form = { encoding, target: undefined, pretty: false };
      await sendList(call, { clock, newCompressor }, resource, form, list);
      clock.endTurn();
      assert.equal(exchange.state, "ended");
      assert.ok(clock.workMs >= COUNT * OBJECT_MS - 1, "all objects were encoded");
      assert.ok(clock.longestTurnMs < 10, `one turn took ${clock.longestTurnMs} ms`);
      if (encoding === "json") assert.equal(JSON.parse(exchange.text).items.length, COUNT);
    });
});
