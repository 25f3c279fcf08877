/** Admission policies: types in their status, the audit log, the budget of expressions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@quorate/kube-storage";
import type { AdmissionAttributes } from "../../src/admission/admission.ts";
import { PER_CALL_BUDGET } from "../../src/crd/cel/base/budget.ts";
import { RequestExpressions } from "../../src/crd/cel/request-expressions.ts";
import { ApiWorld } from "../support/api-world.ts";
import { until as untilTrue } from "../support/crd-world.ts";
import { driven, startServer, type TestServer, until } from "./server.ts";
import { MASTER } from "./world.ts";

const GROUP = "admissionregistration.k8s.io";
const POLICIES = `/apis/${GROUP}/v1/validatingadmissionpolicies`;

function rulesFor(apiGroup: string, resource: string): object {
  return {
    matchPolicy: "Equivalent",
    resourceRules: [
      {
        apiGroups: [apiGroup],
        apiVersions: ["v1"],
        operations: ["CREATE", "UPDATE"],
        resources: [resource],
      },
    ],
  };
}

function definition(kind: string, name: string, spec: object): object {
  return { apiVersion: `${GROUP}/v1`, kind, metadata: { name }, spec };
}

test("A policy's status names fields that its types do not have", async (t) => {
  const world = await ApiWorld.open(t);
  const create = (name: string, spec: object) =>
    world.ok(POLICIES, {
      method: "POST",
      body: definition("ValidatingAdmissionPolicy", name, {
        matchConstraints: rulesFor("apps", "deployments"),
        ...spec,
      }),
    });
  await create("wrong", {
    paramKind: { apiVersion: "v1", kind: "ConfigMap" },
    variables: [{ name: "count", expression: "object.spec.replicas" }],
    validations: [
      { expression: "object.foo == 'bar'", messageExpression: "object.spec.replicas + 'x'" },
      { expression: "variables.count > 1 && object.metadata.labels['a'] == params.data.x" },
      { expression: "variables.count == 'x'" },
      { expression: "has(oldObject.spec.text) || params.nothing == ''" },
    ],
  });
  await create("right", {
    validations: [
      { expression: "object.spec.template.spec.containers.all(c, c.image.startsWith('a'))" },
      { expression: "object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')" },
      { expression: "authorizer.requestResource.check('burn').allowed()" },
    ],
  });
  const statusOf = (name: string) =>
    untilTrue(async () => {
      const { status } = await world.ok(`${POLICIES}/${name}`);
      return status.observedGeneration === 1 ? status : undefined;
    });
  const { typeChecking } = await statusOf("wrong");
  const mark = (column: number): string => `${".".repeat(column - 1)}^`;
  const shown = (text: string, column: number, expression: string): string =>
    `apps/v1, Kind=Deployment: ERROR: <input>:1:${column}: ${text}\n` +
    ` | ${expression}\n | ${mark(column)}\n`;
  assert.deepEqual(typeChecking.expressionWarnings, [
    {
      fieldRef: "spec.validations[0].expression",
      warning: shown("undefined field 'foo'", 7, "object.foo == 'bar'"),
    },
    {
      fieldRef: "spec.validations[0].messageExpression",
      warning: shown(
        "found no matching overload for '_+_' applied to '(int, string)'",
        22,
        "object.spec.replicas + 'x'",
      ),
    },
    {
      fieldRef: "spec.validations[2].expression",
      warning: shown(
        "found no matching overload for '_==_' applied to '(int, string)'",
        17,
        "variables.count == 'x'",
      ),
    },
    {
      fieldRef: "spec.validations[3].expression",
      warning:
        "apps/v1, Kind=Deployment: ERROR: <input>:1:4: undefined field 'text'\n" +
        " | has(oldObject.spec.text) || params.nothing == ''\n | ...^\n" +
        "ERROR: <input>:1:35: undefined field 'nothing'\n" +
        " | has(oldObject.spec.text) || params.nothing == ''\n" +
        ` | ${mark(35)}\n`,
    },
  ]);
  assert.deepEqual((await statusOf("right")).typeChecking, {});
});

async function admitted(
  server: TestServer,
  object: object,
): Promise<Readonly<Record<string, string>>> {
  const annotations: Record<string, string> = {};
  const attributes: AdmissionAttributes = {
    operation: "CREATE",
    user: MASTER,
    kind: { group: "", version: "v1", kind: "ConfigMap" },
    resource: { group: "", version: "v1", resource: "configmaps" },
    subresource: "",
    namespace: "default",
    name: "a",
    object: object as KubeObject,
    oldObject: undefined,
    options: null,
    dryRun: false,
    signal: new AbortController().signal,
    warn() {},
    annotate: (key, value) => {
      annotations[key] = value;
    },
  };
  await driven(server.clock, server.runtime.admission.validate(attributes));
  return annotations;
}

test("Failures with the action Audit, and values of auditAnnotations, are for the audit log", async () => {
  const server = await startServer();
  const create = (resource: string, object: object) =>
    driven(server.clock, server.world.create(MASTER, resource, "", object, GROUP));
  const limits = (name: string, max: string) =>
    driven(
      server.clock,
      server.world.create(MASTER, "configmaps", "default", {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name },
        data: { max },
      }),
    );
  await limits("one", "1");
  await limits("two", "2");
  await create(
    "validatingadmissionpolicies",
    definition("ValidatingAdmissionPolicy", "p", {
      failurePolicy: "Fail",
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      matchConstraints: rulesFor("", "configmaps"),
      validations: [{ expression: "object.data.n <= params.data.max", message: "too much" }],
      auditAnnotations: [
        { key: "max", valueExpression: "'at most ' + params.data.max" },
        { key: "same", valueExpression: "' same '" },
        { key: "nothing", valueExpression: "null" },
      ],
    }),
  );
  for (const name of ["one", "two"])
    await create(
      "validatingadmissionpolicybindings",
      definition("ValidatingAdmissionPolicyBinding", `for-${name}`, {
        policyName: "p",
        paramRef: { name, parameterNotFoundAction: "Deny" },
        validationActions: ["Audit"],
      }),
    );
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { n: "2" } };
  let found: Readonly<Record<string, string>> = {};
  await until(server.clock, "both bindings", async () => {
    found = await admitted(server, object);
    return found["p/max"] === "at most 1, at most 2";
  });
  assert.equal(found["p/same"], "same");
  assert.equal(found["p/nothing"], undefined);
  assert.deepEqual(JSON.parse(found["validation.policy.admission.k8s.io/validation_failure"]!), [
    {
      message: "too much",
      policy: "p",
      binding: "for-one",
      expressionIndex: 0,
      validationActions: ["Audit"],
    },
  ]);
  await server.stop();
});

test("An expression that walks long texts ends, though it costs little", async () => {
  const expressions = new RequestExpressions();
  await expressions.load();
  const set = expressions.set({ hasParams: false, hasVariables: false });
  const long = "x".repeat(1_000_000);
  const outcomeOf = (expression: string) => {
    const { program, error } = set.compile(expression, []);
    assert.equal(error, undefined);
    return program!.evaluate(() => new Map([["a", long]]), PER_CALL_BUDGET).type;
  };
  const times = (count: number) => JSON.stringify(Array.from({ length: count }, (_, i) => i));
  // The same text is counted once, others each time.
  assert.equal(outcomeOf(`${times(50)}.all(i, object.a.size() > i)`), "value");
  assert.equal(outcomeOf(`${times(2)}.all(i, (object.a + string(i)).size() > 0)`), "value");
  assert.equal(outcomeOf(`${times(9)}.all(i, (object.a + string(i)).size() > 0)`), "exceeded");
});
