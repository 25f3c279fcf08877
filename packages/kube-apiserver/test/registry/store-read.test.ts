import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceSpec, WatchEvent } from "@quorate/kube-storage";
import { fieldEquals, parseFieldSelector, parseLabelSelector } from "@quorate/kube-storage";
import { configMaps } from "../../src/builtin/configmaps.ts";
import { namespaces } from "../../src/builtin/namespaces.ts";
import { failure, listOptions, RegistryWorld, sourceOf } from "../support/registry-world.ts";

const KIND = { group: "", version: "v1", kind: "ConfigMap" };

function world(changes: Partial<ResourceSpec> = {}): RegistryWorld {
  return new RegistryWorld({ ...configMaps(sourceOf(KIND)), ...changes });
}

async function filled(): Promise<RegistryWorld> {
  const w = world();
  for (const [namespace, name, app] of [
    ["default", "a", "web"],
    ["default", "b", "db"],
    ["other", "a", "web"],
  ]) {
    const object = w.object({ name, labels: { app } });
    const options = { dryRun: false, fieldManager: "", fieldValidation: "Warn" } as const;
    await w.main.create(w.ctx(namespace), object, w.admit, options);
  }
  return w;
}

test("Names that cannot be in a key are refused", async () => {
  const w = world();
  const get = (name: string, namespace?: string) =>
    failure(w.main.get(w.ctx(namespace), name, { resourceVersion: "" }));
  assert.equal((await get("a%b")).message, `Name parameter invalid: "a%b": may not contain '%'`);
  assert.equal((await get("..")).message, `Name parameter invalid: "..": may not be '..'`);
  assert.equal(
    (await get("/%")).message,
    `Name parameter invalid: "/%": may not contain '/';may not contain '%'`,
  );
  assert.equal((await get("")).message, "Name parameter required.");
  assert.equal((await get("a", "")).message, "Namespace parameter required.");
  const missing = await get("a");
  assert.deepEqual([missing.httpStatus, missing.message], [404, 'configmaps "a" not found']);
});

test("Lists: a namespace, all namespaces, selectors", async () => {
  const w = await filled();
  const keys = async (...args: Parameters<typeof w.list>) =>
    (await w.list(...args)).items.map(({ key }) => key.replace("/configmaps/", ""));
  assert.deepEqual(await keys(), ["default/a", "default/b"]);
  assert.deepEqual(await keys({}, ""), ["default/a", "default/b", "other/a"]);
  const label = parseLabelSelector("app=web");
  assert.deepEqual(await keys({ label }, ""), ["default/a", "other/a"]);
  const named = parseFieldSelector("metadata.name=a,metadata.namespace!=default");
  assert.deepEqual(await keys({ field: named }, ""), ["other/a"]);
  const page = await w.list({ limit: 2 }, "");
  assert.equal(page.items.length, 2);
  assert.equal(page.remainingItemCount, 1);
  assert.equal(page.resourceVersion, "4");
  const next = await w.list({ limit: 2, continueToken: page.continueToken }, "");
  assert.deepEqual([next.items.length, next.continueToken], [1, ""]);
});

test("A selector of one name or namespace reads only that", async () => {
  const w = await filled();
  const read = async (field: string, namespace: string): Promise<string> => {
    w.cluster.requests.length = 0;
    await w.list({ field: parseFieldSelector(field) }, namespace);
    return w.cluster.requests.at(-1)!.key;
  };
  assert.equal(await read("metadata.name=a", "default"), "/registry/configmaps/default/a");
  assert.equal(
    await read("metadata.name=a,metadata.namespace=other", ""),
    "/registry/configmaps/other/a",
  );
  assert.equal(await read("metadata.namespace=other", ""), "/registry/configmaps/other/");
  assert.equal(await read("metadata.name=a", ""), "/registry/configmaps/");
  assert.equal(await read("metadata.name=a%b", "default"), "/registry/configmaps/default/");
  assert.equal(await read("metadata.namespace=A_b", ""), "/registry/configmaps/");
});

test("Fields that a kind cannot be selected by", async () => {
  const refused = async (w: RegistryWorld, field: string): Promise<string> => {
    const selector = parseFieldSelector(field);
    const error = await failure(w.list({ field: selector }));
    const watched = await failure(w.main.watch(w.ctx(), listOptions({ field: selector })));
    assert.deepEqual([error.httpStatus, watched.message], [400, error.message]);
    return error.message;
  };
  assert.equal(
    await refused(world(), "foo=bar"),
    '"foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
  );
  assert.equal(
    await refused(world({ selectableFieldNames: ["type"] }), "foo=bar"),
    "field label not supported: foo",
  );
  const ns = new RegistryWorld(namespaces(sourceOf({ ...KIND, kind: "Namespace" })));
  assert.equal(
    await refused(ns, "metadata.namespace=x"),
    "field label not supported: metadata.namespace",
  );
});

test("A watch of one object reports its changes", async () => {
  const w = await filled();
  const options = { ...listOptions({ field: fieldEquals("metadata.name", "b") }) };
  const watch = await w.main.watch(w.ctx(), { ...options, resourceVersion: "4" });
  const events: WatchEvent[] = [];
  const arrived = new Promise<void>((resolve) => {
    watch.start({
      event: (event) => {
        events.push(event);
        if (events.length === 2) resolve();
        return true;
      },
      ended: () => resolve(),
    });
  });
  await w.put(w.object({ name: "a" }, { data: { k: "v" } }));
  await w.put(w.object({ name: "b" }, { data: { k: "v" } }));
  await w.delete("b");
  await arrived;
  watch.stop();
  assert.deepEqual(
    events.map(({ type, object }) => `${type} ${object.object().metadata.name}`),
    ["MODIFIED b", "DELETED b"],
  );
});

test("The storage knows when a watch will end", async () => {
  const w = world();
  let known: number | undefined;
  const watch = w.storage.watch.bind(w.storage);
  w.storage.watch = (key, options) => {
    known = options.timeoutMs;
    return watch(key, options);
  };
  const started = await w.main.watch(w.ctx(), { ...listOptions(), timeoutSeconds: 90 });
  started.stop();
  assert.equal(known, 90_000);
});

test("A malformed resourceVersion of a list", async () => {
  const w = world();
  const call = w.main.list(w.ctx(), { ...listOptions(), resourceVersion: "abc" });
  assert.equal(
    (await failure(call)).message,
    'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: ' +
      'parsing "abc": invalid syntax',
  );
});
