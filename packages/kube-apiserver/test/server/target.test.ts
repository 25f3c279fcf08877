import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MAX_QUERY_PARAMETERS, Query, Target } from "../../src/handlers/target.ts";

/** METHOD TARGET, and what it means: verb group/version namespace resource/subresource name. */
const CASES: readonly (readonly [string, string])[] = [
  ["GET /api/v1/namespaces", "list /v1 - namespaces -"],
  ["GET /api/v1/namespaces/other", "get /v1 other namespaces other"],
  ["GET /api/v1/namespaces/other/pods", "list /v1 other pods -"],
  ["GET /api/v1/namespaces/other/pods/foo", "get /v1 other pods foo"],
  ["HEAD /api/v1/namespaces/other/pods/foo", "get /v1 other pods foo"],
  ["GET /api/v1/pods", "list /v1 - pods -"],
  ["HEAD /api/v1/pods", "list /v1 - pods -"],
  ["GET /api/v1/namespaces/other/pods/foo/log", "get /v1 other pods/log foo"],
  ["GET /api/v1/namespaces/other/status", "get /v1 other namespaces/status other"],
  ["PUT /api/v1/namespaces/other/finalize", "update /v1 other namespaces/finalize other"],
  ["GET /api/v1/watch/pods", "watch /v1 - pods -"],
  ["GET /api/v1/watch/namespaces/other/pods", "watch /v1 other pods -"],
  ["GET /api/v1/watch/namespaces/other/pods/foo", "watch /v1 other pods foo"],
  ["GET /api/v1/pods?watch=true", "watch /v1 - pods -"],
  ["GET /api/v1/pods?watch=false", "list /v1 - pods -"],
  ["GET /api/v1/pods?watch=0", "list /v1 - pods -"],
  ["GET /api/v1/pods?watch", "watch /v1 - pods -"],
  ["GET /api/v1/pods?fieldSelector=metadata.name%3Dfoo", "list /v1 - pods foo"],
  ["GET /api/v1/pods?fieldSelector=metadata.name!%3Dfoo", "list /v1 - pods -"],
  ["POST /api/v1/namespaces/other/pods", "create /v1 other pods -"],
  ["PATCH /apis/apps/v1/namespaces/x/deployments/y/scale", "patch apps/v1 x deployments/scale y"],
  ["DELETE /api/v1/namespaces/other/pods/foo", "delete /v1 other pods foo"],
  ["DELETE /api/v1/namespaces/other/pods", "deletecollection /v1 other pods -"],
  ["OPTIONS /api/v1/pods", " /v1 - pods -"],
];

const PLAIN = ["/", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/healthz", "/metrics"];

function targetOf(line: string): Target {
  const [method, target] = line.split(" ");
  const [path, query = ""] = target.split("?");
  return Target.of(method, path, new Query(query));
}

describe("target", () => {
  for (const [line, expected] of CASES)
    it(line, () => {
      const target = targetOf(line);
      const { verb, group, version, namespace, resource, subresource, name } = target;
      const whole = subresource === "" ? resource : `${resource}/${subresource}`;
      const shown = `${verb} ${group}/${version} ${namespace || "-"} ${whole} ${name || "-"}`;
      assert.equal(shown, expected);
      assert.equal(target.isResourceRequest, true);
    });

  it("knows paths that are no resources", () => {
    for (const path of PLAIN) {
      const target = targetOf(`GET ${path}`);
      assert.deepEqual([target.isResourceRequest, target.verb], [false, "get"], path);
    }
  });

  it("has the problem of a verb without a resource, and of escapes that are broken", () => {
    for (const path of ["/api/v1/watch", "/api/v1/pods/%zz"]) {
      const target = targetOf(`GET ${path}`);
      assert.equal(typeof target.problem, "string");
      assert.deepEqual([target.isResourceRequest, target.path], [false, path]);
    }
    assert.equal(targetOf("GET /api/v1/pods").problem, undefined);
  });

  it("knows that watches last as long as their clients want", () => {
    assert.equal(targetOf("GET /api/v1/pods?watch=1").isLongRunning, true);
    assert.equal(targetOf("GET /api/v1/pods").isLongRunning, false);
    assert.equal(targetOf("GET /watch").isLongRunning, false);
  });
});

describe("the type Target", () => {
  it("has no maker but its own", () => {
    const one = targetOf("GET /api/v1/namespaces/foo/pods/a");
    const takes = (target: Target): boolean => Target.isMade(target);
    assert.equal(takes(one), true);
    // @ts-expect-error a changed copy is no Target
    assert.equal(takes({ ...one, name: "b" }), false);
    // @ts-expect-error its constructor is private
    assert.throws(() => new Target("GET", "/", {}, undefined).name.length);
    // @ts-expect-error its fields are fixed
    const changed = (): string => (one.name = "b");
    assert.equal(typeof changed, "function");
  });

  it("has a form in which each value has its place", () => {
    const forms = {
      "/api/v1/namespaces/foo/configmaps/a": "namespaces/{namespace}/configmaps/{name}",
      "/api/v1/namespaces/foo/namespaces/a": "namespaces/{namespace}/namespaces/{name}",
      "/api/v1/namespaces/foo/finalize": "namespaces/{name}/finalize",
      "/api/v1/watch/namespaces/foo": "watch/namespaces/{name}",
      "/api/v1/configmaps/a/status/more/still": "configmaps/{name}/status/more/still",
      "/api/v1/%7Bname%7D": "{name}",
    };
    for (const [path, form] of Object.entries(forms))
      assert.equal(targetOf(`GET ${path}`).form, form);
  });

  it("costs what its path's length costs", () => {
    const texts: Readonly<Record<string, (count: number) => string>> = {
      "slashes before": (count) => `${"/".repeat(count)}api/v1/pods`,
      "slashes behind": (count) => `/api/v1/pods${"/".repeat(count)}`,
      "slashes within": (count) => `/api/v1/pods${"/".repeat(count)}a`,
      "slashes between": (count) => `/api/v1/pods${"/a".repeat(count / 2)}`,
      escapes: (count) => `/api/v1/pods${"%2F".repeat(count / 3)}a`,
      selector: (count) => `/api/v1/pods?fieldSelector=${"%2C".repeat(count / 3)}`,
      blanks: (count) => `/api/v1/pods?fieldSelector=${"+".repeat(count)}x`,
    };
    const costMs = (line: string): number => {
      const spent: number[] = [];
      for (let run = 0; run < 5; run++) {
        const from = process.cpuUsage();
        for (let i = 0; i < 20; i++) targetOf(line);
        const { user, system } = process.cpuUsage(from);
        spent.push((user + system) / 1000 / 20);
      }
      return Math.min(...spent);
    };
    for (const [what, textOf] of Object.entries(texts)) {
      const [short, long] = [8_000, 64_000].map((count) => costMs(`GET ${textOf(count)}`));
      // Quadratic cost would be 64 times as much, and was 3.5 s.
      assert.ok(long < 40 * short + 5, `${what}: ${short} ms, 8 times as long ${long} ms`);
    }
  });
});

describe("query", () => {
  it("decodes names and values, and leaves out broken ones as Go does", () => {
    const query = new Query("a=1&a=2&b=x+y%21&c=%zz&d;e=1&f&=g");
    assert.deepEqual(query.all("a"), ["1", "2"]);
    assert.equal(query.first("b"), "x y!");
    assert.equal(query.has("c"), false);
    assert.equal(query.has("d;e"), false);
    assert.deepEqual([query.has("f"), query.first("f"), query.flag("f")], [true, "", true]);
  });

  it("reads at most so many parameters", () => {
    const query = new Query(`${"x=1&".repeat(MAX_QUERY_PARAMETERS)}last=1`);
    assert.equal(query.all("x").length, MAX_QUERY_PARAMETERS);
    assert.equal(query.has("last"), false);
  });
});
