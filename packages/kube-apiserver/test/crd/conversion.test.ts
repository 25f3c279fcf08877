/** Conversion by webhook: requests, results, refusals, order in watches, bounds. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { nodeClock } from "@quorate/host/node";
import type { ApiError, KubeObject, Watch, WatchEvent, WatchListener } from "@quorate/kube-storage";
import { MadeObject } from "@quorate/kube-storage";
import { type WebhookCall, WebhookCallError } from "../../src/admission/webhook-caller.ts";
import { FieldManagers } from "../../src/apply/field-manager.ts";
import { ConvertingWatch, MAX_WAITING_EVENTS } from "../../src/crd/conversion/converting-watch.ts";
import {
  MAX_OBJECTS_PER_CALL,
  WebhookConverter,
} from "../../src/crd/conversion/webhook-converter.ts";
import { CrdWorld, until } from "../support/crd-world.ts";

const OPEN = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const version = (name: string, schema: object = OPEN) => ({
  name,
  served: true,
  storage: name === "v1",
  schema: { openAPIV3Schema: schema },
});

interface Review {
  readonly request: {
    readonly uid: string;
    readonly desiredAPIVersion: string;
    readonly objects: readonly KubeObject[];
  };
}

/** v1 has "size", v2 has "length". */
function renamed(object: KubeObject, apiVersion: string): KubeObject {
  const { size, length, ...spec } = object["spec"] as { size?: unknown; length?: unknown };
  const value = size ?? length;
  const named = apiVersion.endsWith("v1") ? { size: value } : { length: value };
  return { ...object, apiVersion, spec: { ...spec, ...named } };
}

class FakeWebhook {
  readonly calls: Review[] = [];
  change: (response: Record<string, unknown>, review: Review) => unknown = (one) => one;

  readonly call = async ({ body }: WebhookCall) => {
    const review = JSON.parse(new TextDecoder().decode(body)) as Review;
    this.calls.push(review);
    const { uid, desiredAPIVersion, objects } = review.request;
    const response = {
      uid,
      result: { status: "Success" },
      convertedObjects: objects.map((one) => renamed(one, desiredAPIVersion)),
    };
    const changed = this.change(response, review);
    const answer = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "ConversionReview",
      response: changed,
    };
    return { status: 200, body: new TextEncoder().encode(JSON.stringify(answer)) };
  };
}

async function message(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => assert.fail("it was accepted"),
    (error: ApiError) => error.message,
  );
}

describe("conversion by webhook", () => {
  const webhook = new FakeWebhook();
  let world: CrdWorld;
  before(async () => {
    world = await CrdWorld.open({ webhooks: webhook });
    await world.defineSchema("boxes", OPEN, {
      versions: [version("v1"), version("v2")],
      conversion: {
        strategy: "Webhook",
        webhook: {
          clientConfig: { url: "https://webhook.example/convert" },
          conversionReviewVersions: ["v1"],
        },
      },
    });
  });
  after(() => world.close());

  const box = (apiVersion: string, name: string, spec: object) => ({
    apiVersion: `recorded.example/${apiVersion}`,
    kind: "Boxes",
    metadata: { name },
    spec,
  });

  test("objects are stored in the storage version and converted once", async () => {
    await world.create("boxes", box("v2", "a", { length: 5 }), "v2");
    const stored = await world.get("boxes", "a");
    assert.deepEqual(stored["spec"], { size: 5 });
    const other = await world.get("boxes", "a", "v2");
    assert.deepEqual([other.apiVersion, other["spec"]], ["recorded.example/v2", { length: 5 }]);
    await world.list("boxes", "v2");
    const before = webhook.calls.length;
    await world.list("boxes", "v2");
    assert.equal(webhook.calls.length, before, "a cached object is converted once");
    const put = await world.put("boxes", { ...other, spec: { length: 6 } }, "v2");
    assert.deepEqual(put["spec"], { length: 6 });
    assert.deepEqual((await world.get("boxes", "a"))["spec"], { size: 6 });
  });

  test("events keep their order", async () => {
    const seen = await world.watch("boxes", "v2");
    for (let i = 0; i < 20; i++) {
      await world.create("boxes", box("v1", `o${String(i).padStart(2, "0")}`, { size: i }));
    }
    await until(() => (seen.events.length >= 20 ? true : undefined));
    const specs = seen.events
      .map((event) => event.object.object())
      .filter(({ metadata }) => metadata.name?.startsWith("o"))
      .map((object) => (object["spec"] as { length: number }).length);
    assert.deepEqual(
      specs,
      [...specs].sort((a, b) => a - b),
    );
    seen.stop();
  });

  test("bookmarks go past the webhook, with their version and annotations", async () => {
    const calls = webhook.calls.length;
    const seen = await world.watch("boxes", "v2", { sendInitialEvents: true });
    const marked = await until(() => seen.events.find((event) => event.type === "BOOKMARK"));
    seen.stop();
    const { apiVersion, metadata } = marked.object.object();
    assert.equal(apiVersion, "recorded.example/v2");
    assert.equal(metadata.annotations?.["k8s.io/initial-events-end"], "true");
    const asked = webhook.calls.slice(calls).flatMap(({ request }) => request.objects);
    assert.ok(asked.every((object) => object.metadata.name !== undefined));
  });

  test("what a webhook may not do is refused", async () => {
    const fail = async (change: FakeWebhook["change"]) => {
      webhook.change = change;
      const text = await message(world.create("boxes", box("v2", "bad", { length: 1 }), "v2"));
      webhook.change = (one) => one;
      return text.replace("conversion webhook for recorded.example/v2, Kind=Boxes ", "");
    };
    const objects =
      (change: (one: KubeObject) => unknown) => (response: Record<string, unknown>) => ({
        ...response,
        convertedObjects: (response["convertedObjects"] as KubeObject[]).map(change),
      });
    assert.equal(
      await fail((one) => ({ ...one, result: { status: "Failure", message: "no" } })),
      "failed: no",
    );
    assert.match(await fail((one) => ({ ...one, uid: "x" })), /^failed: expected response.uid=/);
    assert.equal(
      await fail((one) => ({ ...one, convertedObjects: [] })),
      "returned 0 objects, expected 1",
    );
    assert.equal(await fail(() => undefined), "failed: no response provided");
    assert.match(
      await fail(objects((one) => ({ ...one, apiVersion: "recorded.example/v3" }))),
      /invalid groupVersion \(expected recorded.example\/v1, received recorded.example\/v3\)/,
    );
    assert.match(await fail(objects((one) => ({ ...one, kind: "Other" }))), /invalid kind/);
    assert.match(
      await fail(objects((one) => ({ ...one, metadata: { ...one.metadata, name: "b" } }))),
      /must have the same name: bad != b/,
    );
    assert.match(
      await fail(
        objects((one) => ({ ...one, metadata: { ...one.metadata, labels: { "a b": "c" } } })),
      ),
      /metadata.labels: Invalid value: "a b"/,
    );
    assert.match(
      await fail(() => {
        throw new WebhookCallError("Timeout", "no response in 30 s");
      }),
      /^failed: no response in 30 s$/,
    );
  });

  test("labels of the webhook count, other metadata does not", async () => {
    webhook.change = (response) => ({
      ...response,
      convertedObjects: (response["convertedObjects"] as KubeObject[]).map((one) => ({
        ...one,
        metadata: { ...one.metadata, labels: { by: "webhook" }, generation: 77 },
      })),
    });
    await world.create("boxes", box("v2", "labelled", { length: 1 }), "v2");
    webhook.change = (one) => one;
    const { metadata } = await world.get("boxes", "labelled");
    assert.deepEqual([metadata.labels, metadata.generation], [{ by: "webhook" }, 1]);
  });

  test("a dry run shows what the stored version keeps", async () => {
    const both = box("v2", "dry", { size: 2, length: 1 });
    const created = await world.create("boxes", both, "v2", "default", true);
    assert.deepEqual([created.apiVersion, created["spec"]], [both.apiVersion, { length: 2 }]);
    await world.create("boxes", both, "v2");
    const other = { ...(await world.get("boxes", "dry", "v2")), spec: { size: 4, length: 3 } };
    const put = await world.put("boxes", other, "v2", "", true);
    assert.deepEqual(put["spec"], { length: 4 });
    assert.deepEqual((await world.get("boxes", "dry"))["spec"], { size: 2 });
  });

  test("an object that apply left without metadata is converted, as a webhook in Go does it", async () => {
    webhook.change = (response) => ({
      ...response,
      convertedObjects: (response["convertedObjects"] as KubeObject[]).map((one) => ({
        ...one,
        metadata: {},
      })),
    });
    const { metadata: _, ...left }: KubeObject = box("v1", "x", { size: 1 });
    const [converted] = await world.find("boxes", "v2")!.convert([left as KubeObject]);
    webhook.change = (one) => one;
    assert.deepEqual(converted, { ...box("v2", "x", { length: 1 }), metadata: {} });
  });
});

test("an apply is refused where the version of a manager's entry does not have a field", async (t) => {
  const world = await CrdWorld.open();
  t.after(() => world.close());
  const closed = (...names: string[]) => ({
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, { type: "integer" }])),
  });
  await world.defineSchema("crates", OPEN, {
    versions: [version("v1", closed("size")), version("v2", closed("size", "length"))],
  });
  const managers = new FieldManagers(world.table, nodeClock);
  const crate = (name: string, fields: object) =>
    world.find("crates", name)!.decode({
      apiVersion: `recorded.example/${name}`,
      kind: "Crates",
      metadata: { name: "a" },
      ...fields,
    }).object;
  const apply = (present: KubeObject | undefined, object: KubeObject, manager: string) => {
    const served = world.find("crates", object.apiVersion.split("/")[1])!;
    return managers.of(served).apply(present, object, manager, "", false, 0);
  };
  const made = await apply(undefined, crate("v1", { size: 1 }), "old");
  const wrong = ".length: field not declared in schema";
  const longer = crate("v2", { size: 1, length: 2 });
  // Of the same manager, and of another after something else set the field.
  assert.equal(
    await message(apply({ ...made, apiVersion: longer.apiVersion }, longer, "old")),
    `failed to prune fields: failed to convert merged object to last applied version: ${wrong}`,
  );
  const set = { ...made, ...longer, metadata: made.metadata };
  assert.equal(await message(apply(set, longer, "new")), wrong);
  // Whoever does not apply goes on, and nobody owns the fields then.
  const v2 = managers.of(world.find("crates", "v2")!);
  const updated = await v2.update(set, { ...set, length: 3 }, "new", "", 0);
  assert.equal(updated.metadata.managedFields, undefined);
});

describe("bounds of conversion", () => {
  test("a long list is converted in several calls", async () => {
    const webhook = new FakeWebhook();
    const options = { config: { url: "https://a" }, reviewVersions: ["v9", "v1"] };
    const converter = new WebhookConverter(options, {
      caller: webhook,
      clock: nodeClock,
      newUid: () => "uid",
    });
    const objects = Array.from({ length: 2 * MAX_OBJECTS_PER_CALL + 1 }, (_, i) => ({
      apiVersion: i === 3 ? "g/v2" : "g/v1",
      kind: "K",
      metadata: { name: `o${i}` },
      spec: { size: i },
    }));
    const converted = await converter.convert(objects, "g/v2");
    assert.equal(webhook.calls.length, 2);
    assert.equal(converted[3], objects[3]);
    assert.deepEqual(
      converted.map(({ metadata }) => metadata.name),
      objects.map(({ metadata }) => metadata.name),
    );
  });

  test("a watch is held up while its events wait", async () => {
    let listener: WatchListener | undefined;
    let resumed = 0;
    const below: Watch = {
      start: (one) => {
        listener = one;
      },
      resume: () => resumed++,
      stop: () => {},
    };
    const waiting: (() => void)[] = [];
    const watch = new ConvertingWatch(
      below,
      (items) => new Promise((resolve) => waiting.push(() => resolve(items))),
    );
    const seen: WatchEvent[] = [];
    let ended = false;
    watch.start({
      event: (event) => seen.push(event) !== 3,
      ended: () => {
        ended = true;
      },
    });
    const event = (i: number): WatchEvent => ({
      type: "ADDED",
      object: new MadeObject(`/k/${i}`, i, { apiVersion: "v1", kind: "K", metadata: {} }),
    });
    let sent = 0;
    while (listener!.event(event(sent++))) assert.ok(sent <= MAX_WAITING_EVENTS);
    assert.equal(sent, MAX_WAITING_EVENTS);
    const converted = () => {
      for (const done of waiting.splice(0)) done();
    };
    await until(() => {
      converted();
      return seen.length === 3 ? true : undefined;
    });
    assert.equal(resumed, 0);
    watch.resume();
    await until(() => {
      converted();
      return seen.length === sent ? true : undefined;
    });
    assert.equal(resumed, 1);
    assert.deepEqual(
      seen.map(({ object }) => object.resourceVersion),
      Array.from({ length: sent }, (_, i) => i),
    );
    listener!.event(event(sent));
    listener!.ended(undefined);
    assert.equal(ended, false);
    await until(() => {
      converted();
      return ended || undefined;
    });
    assert.equal(seen.length, sent + 1);
  });
});
