import assert from "node:assert/strict";
import { test } from "node:test";
import { ANONYMOUS } from "@quorate/kube-storage";
import { auditDecision } from "../../src/audit/policy.ts";
import { MAX_POLICY_LIST, parseAuditPolicy } from "../../src/audit/policy-file.ts";

const HEAD = { apiVersion: "audit.k8s.io/v1", kind: "Policy" };
const REQUEST = {
  user: { ...ANONYMOUS, name: "jane", groups: ["dev"] },
  verb: "get",
  isResourceRequest: true,
  namespace: "ns",
  group: "apps",
  version: "v1",
  resource: "deployments",
  subresource: "",
  name: "web",
  path: "/apis/apps/v1",
};

/** Whether a rule of these fields decides about the request. */
function decides(rule: object, request: Partial<typeof REQUEST> = {}): boolean {
  const { policy } = parseAuditPolicy({ ...HEAD, rules: [{ level: "Metadata", ...rule }] });
  return auditDecision(policy, { ...REQUEST, ...request }).level === "Metadata";
}

test("A rule fits requests of its users, verbs, namespaces and resources", () => {
  const of = (group: string, ...resources: string[]) => ({ resources: [{ group, resources }] });
  const scale = { subresource: "scale" };
  const page = { isResourceRequest: false, path: "/healthz/etcd", resource: "" };
  const cases: readonly [object, boolean, Partial<typeof REQUEST>?][] = [
    [{}, true],
    [{ users: ["jane"] }, true],
    [{ users: ["joe"] }, false],
    [{ userGroups: ["ops", "dev"] }, true],
    [{ userGroups: ["ops"] }, false],
    [{ verbs: ["list"] }, false],
    [{ namespaces: ["ns"] }, true],
    [{ namespaces: [""] }, false],
    [{ namespaces: [""] }, true, { namespace: "" }],
    [{ namespaces: ["ns"] }, false, page],
    [of("apps"), true],
    [of("*", "deployments"), true],
    [of("", "deployments"), false],
    [of("apps", "deployments"), false, scale],
    [of("apps", "deployments/scale"), true, scale],
    [of("apps", "deployments/*"), true, scale],
    [of("apps", "*/scale"), true, scale],
    [of("apps", "*"), true, scale],
    [{ resources: [{ group: "apps", resources: ["*"], resourceNames: ["other"] }] }, false],
    [{ resources: [{ group: "apps", resources: ["*"], resourceNames: ["web"] }] }, true],
    [{ nonResourceURLs: ["/healthz*"] }, true, page],
    [{ nonResourceURLs: ["/healthz"] }, false, page],
    [{ nonResourceURLs: ["*"] }, true, page],
    [{ nonResourceURLs: ["*"] }, false],
  ];
  for (const [rule, expected, request] of cases)
    assert.equal(decides(rule, request), expected, JSON.stringify([rule, request]));
});

test("The first rule that fits decides; without one nothing is recorded", () => {
  const rules = [
    { level: "None", users: ["joe"] },
    {
      level: "Request",
      users: ["jane"],
      omitStages: ["ResponseStarted"],
      omitManagedFields: false,
    },
    { level: "RequestResponse", users: ["jane"] },
  ];
  const parsed = parseAuditPolicy({
    ...HEAD,
    rules,
    omitStages: ["RequestReceived"],
    omitManagedFields: true,
    hello: 1,
  });
  assert.deepEqual(parsed.unknownFields, ["hello"]);
  assert.deepEqual(auditDecision(parsed.policy, REQUEST), {
    level: "Request",
    omitStages: ["RequestReceived", "ResponseStarted"],
    omitManagedFields: false,
  });
  const other = { ...REQUEST, user: { ...REQUEST.user, name: "someone" } };
  assert.equal(auditDecision(parsed.policy, other).level, "None");
  const [, , last] = rules;
  const inherited = parseAuditPolicy({ ...HEAD, rules: [last], omitManagedFields: true });
  assert.equal(auditDecision(inherited.policy, REQUEST).omitManagedFields, true);
});

test("A policy that is wrong is refused with Kubernetes' texts", () => {
  const rule = (fields: object) => ({ ...HEAD, rules: [{ level: "Metadata", ...fields }] });
  const cases: readonly [unknown, RegExp][] = [
    [undefined, /failed decoding: the file: expected an object/],
    [{ ...HEAD, apiVersion: "audit.k8s.io/v1beta1" }, /unknown group version field/],
    [{ ...HEAD, rules: [] }, /^Error: loaded illegal policy with 0 rules$/],
    [{ ...HEAD, rules: [{}] }, /^Error: rules\[0\].level: Required value$/],
    [
      rule({ level: "All" }),
      /rules\[0\].level: Unsupported value: "All": supported values: "None", "Metadata", "Request"/,
    ],
    [
      rule({ omitStages: ["Never"] }),
      /omitStages\[0\]: Invalid value: "Never": allowed stages are/,
    ],
    [rule({ nonResourceURLs: ["x"] }), /must begin with a '\/' character/],
    [rule({ nonResourceURLs: ["/a*b"] }), /must be the final character of the rule/],
    [rule({ nonResourceURLs: ["/a"], namespaces: ["b"] }), /cannot apply to both/],
    [rule({ resources: [{ group: "apps/v1" }] }), /rules\[0\].resources.group: Invalid value/],
    [rule({ resources: [{ resourceNames: ["a"] }] }), /requires at least one resource/],
    [rule({ users: "jane" }), /rules\[0\].users: expected a list/],
    [rule({ users: [1] }), /expected texts/],
    [rule({ omitManagedFields: "yes" }), /expected true or false/],
    [rule({ users: Array(MAX_POLICY_LIST + 1).fill("a") }), /more than 1000 elements/],
  ];
  for (const [value, expected] of cases)
    assert.throws(() => parseAuditPolicy(value), expected, JSON.stringify(value)?.slice(0, 200));
});
