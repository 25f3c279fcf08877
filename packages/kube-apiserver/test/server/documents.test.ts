import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ApiWorld } from "../support/api-world.ts";

let world: ApiWorld;
const tasks: (() => Promise<void>)[] = [];
before(async () => {
  world = await ApiWorld.open({ after: (task) => void tasks.push(task) });
});
after(async () => {
  for (const task of tasks) await task();
});

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

describe("discovery", () => {
  it("names versions, groups and resources", async () => {
    assert.deepEqual((await world.ok("/api")).versions, ["v1"]);
    const { groups } = await world.ok("/apis");
    const leases = groups.find(({ name }: { name: string }) => name === "coordination.k8s.io");
    assert.deepEqual(leases.preferredVersion, {
      groupVersion: "coordination.k8s.io/v1",
      version: "v1",
    });
    assert.equal((await world.ok("/apis/coordination.k8s.io")).kind, "APIGroup");
    const { resources, groupVersion } = await world.ok("/api/v1");
    assert.equal(groupVersion, "v1");
    const configMaps = resources.find(({ name }: { name: string }) => name === "configmaps");
    assert.deepEqual(configMaps, {
      name: "configmaps",
      singularName: "configmap",
      namespaced: true,
      kind: "ConfigMap",
      verbs: ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
      shortNames: ["cm"],
      storageVersionHash: "qFsyl6wFWjQ=",
    });
    const token = resources.find(({ name }: { name: string }) => name === "serviceaccounts/token");
    assert.deepEqual([token.kind, token.group], ["TokenRequest", "authentication.k8s.io"]);
  });

  it("is one document for clients that ask for it, with an ETag", async () => {
    const accept = `${AGGREGATED},application/json;q=0.9`;
    const { json, headers } = await world.request("/apis", { headers: { accept } });
    assert.equal(headers["content-type"], AGGREGATED);
    assert.equal(json.kind, "APIGroupDiscoveryList");
    const [first] = json.items[0].versions[0].resources;
    assert.deepEqual(
      [typeof first.resource, first.responseKind.kind.length > 0, first.verbs.length > 0],
      ["string", true, true],
    );
    const again = { accept, "if-none-match": headers["etag"] };
    const unchanged = await world.request("/apis", { headers: again });
    assert.deepEqual([unchanged.status, unchanged.text], [304, ""]);
    const beta = { accept: AGGREGATED.replace("v=v2", "v=v2beta1") };
    const old = await world.request("/api", { headers: beta });
    assert.equal(old.json.apiVersion, "apidiscovery.k8s.io/v2beta1");
    world.plane.resources.set("more", []);
    assert.equal((await world.request("/apis", { headers: again })).status, 304);
  });

  it("responds with 404 to what is not served", async () => {
    const paths = ["/apis/none", "/apis/none/v1", "/api/v2", "/api/v1/x/y/z/a/b", "/none"];
    for (const path of paths) assert.equal((await world.request(path)).status, 404, path);
  });
});

describe("pages", () => {
  it("has the version and an index", async () => {
    assert.equal((await world.ok("/version")).gitVersion, "v1.36.3");
    const { paths } = await world.ok("/");
    for (const path of ["/api/v1", "/apis", "/readyz/etcd", "/openapi/v2"])
      assert.ok(paths.includes(path), path);
  });

  it("reports health, in all and by check", async () => {
    assert.equal((await world.request("/livez")).text, "ok");
    const verbose = await world.request("/readyz?verbose&exclude=etcd&exclude=none");
    assert.match(verbose.text, /^\[\+\]ping ok\n/);
    assert.match(verbose.text, /\[\+\]etcd excluded: ok\n/);
    assert.match(
      verbose.text,
      /warn: some health checks cannot be excluded: no matches for "none"/,
    );
    assert.match(verbose.text, /readyz check passed\n$/);
    assert.equal((await world.request("/healthz/etcd")).text, "ok");
    assert.equal((await world.request("/healthz/none")).status, 404);
  });

  it("serves OpenAPI, immutable where the hash is in the path", async () => {
    const { paths } = await world.ok("/openapi/v3");
    const { serverRelativeURL } = paths["api/v1"];
    const { json, headers } = await world.request(serverRelativeURL);
    assert.ok(json.paths["/api/v1/namespaces/{namespace}/configmaps"]);
    assert.match(headers["cache-control"], /immutable/);
    const old = await world.request("/openapi/v3/api/v1?hash=OLD");
    assert.deepEqual([old.status, old.headers["location"]], [301, serverRelativeURL]);
    assert.equal((await world.request("/openapi/v3/apis/none/v1")).status, 404);
    const accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    const v2 = await world.request("/openapi/v2", { headers: { accept } });
    assert.match(v2.headers["content-type"], /proto-openapi\.spec\.v2\.v1\.0\+protobuf$/);
    const text = await world.request("/openapi/v2", { headers: { accept: "text/html" } });
    assert.equal(text.status, 406);
  });
});
