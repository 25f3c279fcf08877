/**
 * --etcd-servers-overrides: events in a cluster of their own, which serves while the first is down.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "@quorate/client/node";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { startCluster } from "../../../test/support/cluster.ts";

const NO_FILES = { caFile: "", certFile: "", keyFile: "" };

test("events are in the second cluster, and go on while the first one is down", async (t) => {
  const [first, second] = await Promise.all([startCluster({ size: 1 }), startCluster({ size: 1 })]);
  t.after(() => second.destroy());
  let isFirstUp = true;
  const destroyFirst = async () => {
    if (isFirstUp) await first.destroy();
    isFirstUp = false;
  };
  t.after(destroyFirst);
  const overrides = [{ group: "", resource: "events", servers: second.endpoints }];
  const api = await startApiServer({ etcd: { servers: first.endpoints, overrides, ...NO_FILES } });
  t.after(() => api.stop());
  const events = "/api/v1/namespaces/default/events";
  const create = async (name: string) => {
    const { status } = await api.request(events, {
      method: "POST",
      body: {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name },
        involvedObject: { kind: "Pod", name: "p", namespace: "default" },
      },
    });
    assert.equal(status, 201);
  };
  await create("one");
  const keysIn = async (endpoints: readonly string[], prefix: string) => {
    const client = connect({ endpoints });
    try {
      return (await client.get(prefix, { prefix: true })).kvs;
    } finally {
      client.close();
    }
  };
  const [stored] = await keysIn(second.endpoints, "/registry/events/");
  assert.notEqual(stored?.lease, 0n, "its time to live is a lease of the second cluster");
  assert.deepEqual(await keysIn(first.endpoints, "/registry/events/"), []);
  assert.deepEqual(await keysIn(second.endpoints, "/registry/namespaces/"), []);
  const checks = (await api.request("/readyz?verbose")).body as string;
  for (const name of ["etcd", "etcd-override-0", "etcd-readiness", "etcd-override-readiness-0"])
    assert.ok(checks.includes(`[+]${name} ok`), name);
  await destroyFirst();
  await create("two");
  const { body } = await api.request(events);
  const names = body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  assert.deepEqual(names, ["one", "two"]);
});
