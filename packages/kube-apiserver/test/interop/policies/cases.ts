/**
 * Admission policies and the requests that they judge. A policy sees the objects that have its name
 * as their label "case", so that all can be there together.
 */
import type { ApiRequest } from "../rest/exchange.ts";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
export const VALIDATING = `${ADMISSION}/validatingadmissionpolicies`;
export const MUTATING = `${ADMISSION}/mutatingadmissionpolicies`;

type Fields = Readonly<Record<string, unknown>>;

/** A policy with its binding, and the objects that are created under it. */
interface Case {
  readonly name: string;
  readonly policy: Fields;
  readonly binding?: Fields;
  /** Fields of ConfigMaps. */
  readonly objects: readonly Fields[];
  /** Of the requests; default: the administrator. */
  readonly user?: string;
}

const CONFIG_MAP_RULES = [
  {
    apiGroups: [""],
    apiVersions: ["v1"],
    operations: ["CREATE", "UPDATE"],
    resources: ["configmaps"],
  },
];
const ONE = [{ data: { a: "1" } }];
const BOTH = [{ data: { a: "1" } }, { data: { a: "12" } }];

function rule(expression: string, more: Fields = {}): Fields {
  return { validations: [{ expression, ...more }] };
}

const VALIDATING_CASES: readonly Case[] = [
  { name: "size", policy: rule("object.data.a.size() == 1"), objects: BOTH },
  { name: "message", policy: rule("false", { message: " no way " }), objects: ONE },
  {
    name: "forbidden",
    policy: rule("false", { message: "no", reason: "Forbidden" }),
    objects: ONE,
  },
  { name: "too-large", policy: rule("false", { reason: "RequestEntityTooLarge" }), objects: ONE },
  {
    name: "message-expression",
    policy: rule("false", { messageExpression: "'got ' + object.data.a", message: "other" }),
    objects: BOTH,
  },
  {
    name: "message-error",
    policy: rule("false", { messageExpression: "object.data.b", message: "other" }),
    objects: ONE,
  },
  {
    name: "message-lines",
    policy: rule("false", { messageExpression: "'a\\nb'" }),
    objects: ONE,
  },
  {
    name: "message-blank",
    policy: rule("1 ==\n 2", { messageExpression: "'  '" }),
    objects: ONE,
  },
  { name: "missing-key", policy: rule("object.data.b == 'x'"), objects: ONE },
  {
    name: "ignored-error",
    policy: { ...rule("object.data.b == 'x'"), failurePolicy: "Ignore" },
    objects: ONE,
  },
  {
    name: "two",
    policy: { validations: [{ expression: "true" }, { expression: "false", message: "second" }] },
    objects: ONE,
  },
  {
    name: "warned",
    policy: rule("false", { message: "careful" }),
    binding: { validationActions: ["Warn"] },
    objects: ONE,
  },
  {
    name: "warned-error",
    policy: rule("object.data.b == ''"),
    binding: { validationActions: ["Warn", "Audit"] },
    objects: ONE,
  },
  {
    name: "audited",
    policy: rule("false"),
    binding: { validationActions: ["Audit"] },
    objects: ONE,
  },
  {
    name: "variables",
    policy: {
      variables: [
        { name: "first", expression: "object.data.a" },
        { name: "second", expression: "variables.first + variables.first" },
        { name: "unused", expression: "object.data.none" },
      ],
      validations: [
        {
          expression: "variables.second.size() < 3",
          messageExpression: "'too long: ' + variables.second",
        },
      ],
    },
    objects: BOTH,
  },
  {
    name: "variable-error",
    policy: {
      variables: [{ name: "bad", expression: "object.data.none" }],
      ...rule("variables.bad == 'x' || false"),
    },
    objects: ONE,
  },
  {
    name: "conditions",
    policy: {
      ...rule("false"),
      matchConditions: [
        { name: "long", expression: "object.data.a.size() > 1" },
        { name: "named", expression: "request.name != ''" },
      ],
    },
    objects: BOTH,
  },
  {
    name: "condition-error",
    policy: { ...rule("true"), matchConditions: [{ name: "c", expression: "object.x.y" }] },
    objects: ONE,
  },
  {
    name: "condition-errors",
    policy: {
      ...rule("true"),
      matchConditions: [
        { name: "c", expression: "object.x.y" },
        { name: "d", expression: "object.z == 1" },
      ],
    },
    objects: ONE,
  },
  {
    name: "condition-ignored",
    policy: {
      ...rule("false"),
      failurePolicy: "Ignore",
      matchConditions: [{ name: "c", expression: "object.x.y" }],
    },
    objects: ONE,
  },
  {
    name: "request",
    policy: rule("false", {
      messageExpression:
        "[request.operation, request.namespace, request.kind.kind, request.resource.resource, " +
        "request.requestKind.version, request.userInfo.username, string(request.dryRun), " +
        "string(has(request.subResource)), request.options.kind].join('|')",
    }),
    objects: ONE,
  },
  {
    name: "namespace",
    policy: rule("namespaceObject.metadata.name != 'default'", {
      messageExpression:
        "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] + ' ' + " +
        "namespaceObject.status.phase",
    }),
    objects: ONE,
  },
  { name: "old-object", policy: rule("oldObject != null"), objects: ONE },
  {
    name: "params",
    policy: {
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      ...rule("object.data.a.size() <= int(params.data.max)", {
        messageExpression: "'at most ' + params.data.max + ' in ' + params.metadata.name",
      }),
    },
    binding: { paramRef: { name: "limits", parameterNotFoundAction: "Deny" } },
    objects: BOTH,
  },
  {
    name: "params-selected",
    policy: {
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      ...rule("object.data.a != params.data.max", { message: "equal" }),
    },
    binding: {
      paramRef: {
        selector: { matchLabels: { limits: "yes" } },
        namespace: "default",
        parameterNotFoundAction: "Allow",
      },
    },
    objects: BOTH,
  },
  {
    name: "params-denied",
    policy: { paramKind: { apiVersion: "v1", kind: "ConfigMap" }, ...rule("true") },
    binding: { paramRef: { name: "none", parameterNotFoundAction: "Deny" } },
    objects: ONE,
  },
  {
    name: "params-allowed",
    policy: { paramKind: { apiVersion: "v1", kind: "ConfigMap" }, ...rule("false") },
    binding: { paramRef: { name: "none", parameterNotFoundAction: "Allow" } },
    objects: ONE,
  },
  {
    name: "params-unset",
    policy: {
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      ...rule("params != null", { message: "no params" }),
    },
    objects: ONE,
  },
  {
    name: "params-namespaced",
    policy: { paramKind: { apiVersion: "v1", kind: "Namespace" }, ...rule("true") },
    binding: {
      paramRef: { name: "default", namespace: "default", parameterNotFoundAction: "Deny" },
    },
    objects: ONE,
  },
  {
    name: "params-unknown",
    policy: {
      paramKind: { apiVersion: "none.example/v1", kind: "Nothing" },
      ...rule("true"),
      matchConstraints: {
        resourceRules: CONFIG_MAP_RULES,
        objectSelector: { matchLabels: { case: "params-unknown" } },
      },
    },
    binding: { paramRef: { name: "x", parameterNotFoundAction: "Deny" } },
    objects: ONE,
  },
  {
    name: "authorizer",
    policy: rule(
      "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()",
      { message: "you may not read secrets" },
    ),
    objects: ONE,
  },
  {
    name: "authorizer-denied",
    policy: rule(
      "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()",
      { message: "you may not read secrets" },
    ),
    objects: ONE,
    user: "writer",
  },
  {
    name: "authorizer-request",
    policy: rule("authorizer.requestResource.check('burn').allowed()", {
      messageExpression: "request.userInfo.username + ' may not burn'",
    }),
    objects: ONE,
    user: "writer",
  },
  {
    name: "authorizer-others",
    policy: rule(
      "authorizer.path('/metrics').check('get').allowed() || " +
        "authorizer.serviceAccount('default', 'x').group('apps').resource('deployments')" +
        ".subresource('scale').name('y').check('update').reason() != ''",
    ),
    objects: ONE,
    user: "writer",
  },
  {
    name: "authorizer-errors",
    policy: rule("authorizer.group('').resource('').check('get').allowed()"),
    objects: ONE,
  },
  {
    name: "authorizer-cost",
    policy: rule(
      "['a','b','c','d'].all(x, authorizer.group('').resource(x).check('get').allowed())",
    ),
    objects: ONE,
  },
  {
    name: "expensive",
    policy: rule(
      ["a", "b", "c", "d", "e", "f"].reduceRight(
        (inner, name) => `[1,2,3,4,5,6,7,8,9,0].all(${name}, ${inner})`,
        "a + b + c + d + e + f >= 0",
      ),
    ),
    objects: ONE,
  },
  {
    name: "excluded",
    policy: {
      ...rule("false"),
      matchConstraints: {
        resourceRules: CONFIG_MAP_RULES,
        excludeResourceRules: [{ ...CONFIG_MAP_RULES[0], resourceNames: ["excluded-0"] }],
      },
    },
    objects: BOTH,
  },
  {
    name: "named",
    policy: {
      ...rule("false"),
      matchConstraints: {
        resourceRules: [{ ...CONFIG_MAP_RULES[0], resourceNames: ["named-1"] }],
      },
    },
    objects: BOTH,
  },
  {
    name: "other-namespace",
    policy: {
      ...rule("false"),
      matchConstraints: {
        resourceRules: CONFIG_MAP_RULES,
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "other" } },
      },
    },
    objects: ONE,
  },
  {
    name: "annotations",
    policy: {
      auditAnnotations: [
        { key: "a", valueExpression: "'value ' + object.data.a" },
        { key: "none", valueExpression: "null" },
      ],
    },
    objects: ONE,
  },
  {
    name: "annotation-error",
    policy: { auditAnnotations: [{ key: "a", valueExpression: "object.data.none" }] },
    objects: ONE,
  },
];

function applies(expression: string, more: Fields = {}): Fields {
  return {
    reinvocationPolicy: "Never",
    mutations: [{ patchType: "ApplyConfiguration", applyConfiguration: { expression } }],
    ...more,
  };
}

function patches(expression: string, more: Fields = {}): Fields {
  return {
    reinvocationPolicy: "Never",
    mutations: [{ patchType: "JSONPatch", jsonPatch: { expression } }],
    ...more,
  };
}

const MUTATING_CASES: readonly Case[] = [
  {
    name: "m-apply",
    policy: applies(
      "Object{metadata: Object.metadata{labels: Object.metadata.labels{added: 'yes'}}, " +
        "data: {'b': object.data.a + '!'}}",
    ),
    objects: ONE,
  },
  {
    name: "m-apply-typed",
    policy: applies("Object{spec: Object.spec{replicas: 1}}"),
    objects: ONE,
  },
  {
    name: "m-apply-misplaced",
    policy: applies("Object{metadata: Object.spec{name: 'x'}}"),
    objects: ONE,
  },
  {
    name: "m-apply-wrong",
    policy: applies("Object{data: ['x']}"),
    objects: ONE,
  },
  {
    name: "m-apply-atomic",
    policy: applies(
      "Object{metadata: Object.metadata{ownerReferences: [" +
        "Object.metadata.ownerReferences{uid: 'u', name: 'n', kind: 'k', apiVersion: 'v1'}]}}",
    ),
    objects: ONE,
  },
  {
    name: "m-patch",
    policy: patches(
      "[JSONPatch{op: 'add', path: '/data/b', value: 'two'}, " +
        "JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x.io/a~b'), value: 'v'}," +
        "JSONPatch{op: 'copy', from: '/data/a', path: '/data/c'}]",
    ),
    objects: ONE,
  },
  {
    name: "m-patch-test",
    policy: patches(
      "[JSONPatch{op: 'test', path: '/data/a', value: '1'}, " +
        "JSONPatch{op: 'replace', path: '/data/a', value: 'changed'}]",
    ),
    objects: BOTH,
  },
  {
    name: "m-patch-missing",
    policy: patches("[JSONPatch{op: 'remove', path: '/data/none'}]"),
    objects: ONE,
  },
  ...[
    "{op: 'add', path: '/none/x', value: 1}",
    "{op: 'replace', path: '/none/x', value: 1}",
    "{op: 'copy', from: '/none/x', path: '/data/x'}",
    "{op: 'move', from: '/data/none', path: '/data/x'}",
    "{op: 'test', path: '/data/none', value: 'x'}",
    "{op: 'burn', path: '/data/none'}",
    "{op: 'remove', path: '/none/a/b'}",
    "{op: 'add', path: '/unknown', value: {'a': 'b'}}",
    "{op: 'add', path: 'data', value: 'x'}",
  ].map((step, i) => ({
    name: `m-patch-failing-${i}`,
    policy: patches(`[JSONPatch${step}]`),
    objects: ONE,
  })),
  {
    name: "m-patch-map",
    policy: patches(
      "[JSONPatch{op: 'add', path: '/metadata/annotations', value: Object.metadata.annotations{x: 'y'}}]",
    ),
    objects: ONE,
  },
  {
    name: "m-patch-type",
    policy: patches("[JSONPatch{op: 'add', path: '/data/b', value: 5}]"),
    objects: ONE,
  },
  {
    name: "m-error",
    policy: applies("Object{data: {'b': object.data.none}}"),
    objects: ONE,
  },
  {
    name: "m-ignored",
    policy: applies("Object{data: {'b': object.data.none}}", { failurePolicy: "Ignore" }),
    objects: ONE,
  },
  {
    name: "m-condition",
    policy: applies("Object{data: {'b': 'x'}}", {
      matchConditions: [{ name: "c", expression: "object.data.a == '1'" }],
    }),
    objects: BOTH,
  },
  {
    name: "m-params",
    policy: applies("Object{data: {'max': params.data.max}}", {
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
    }),
    binding: { paramRef: { name: "limits", parameterNotFoundAction: "Deny" } },
    objects: ONE,
  },
  {
    name: "m-params-denied",
    policy: applies("Object{}", { paramKind: { apiVersion: "v1", kind: "ConfigMap" } }),
    binding: { paramRef: { name: "none", parameterNotFoundAction: "Deny" } },
    objects: ONE,
  },
  {
    name: "m-variables",
    policy: applies("Object{data: {'b': variables.x}}", {
      variables: [{ name: "x", expression: "object.data.a + object.data.a" }],
    }),
    objects: ONE,
  },
  {
    name: "m-again",
    policy: patches("[JSONPatch{op: 'replace', path: '/data/a', value: object.data.a + 'x'}]", {
      reinvocationPolicy: "IfNeeded",
    }),
    objects: ONE,
  },
  {
    name: "m-optional",
    policy: applies(
      "Object{?data: has(object.data.b) ? optional.of({'c': 'd'}) : optional.none()}",
    ),
    objects: [...ONE, { data: { b: "1" } }],
  },
  {
    name: "m-two",
    policy: {
      reinvocationPolicy: "Never",
      mutations: [
        {
          patchType: "ApplyConfiguration",
          applyConfiguration: { expression: "Object{data: {'b': 'one'}}" },
        },
        {
          patchType: "JSONPatch",
          jsonPatch: {
            expression: "[JSONPatch{op: 'add', path: '/data/c', value: object.data.b}]",
          },
        },
      ],
    },
    objects: ONE,
  },
];

/** Specs that are refused, and for what. */
const BAD_POLICIES: readonly Fields[] = [
  {},
  { validations: [{ expression: "" }] },
  { validations: [{ expression: "object.x ==" }] },
  { validations: [{ expression: "1" }] },
  { validations: [{ expression: "'a'.size() + object.x" }] },
  { validations: [{ expression: "request.nothing == 1" }] },
  { validations: [{ expression: "namespaceObject.metadata.managedFields == null" }] },
  { validations: [{ expression: "params.x == 1" }] },
  { validations: [{ expression: "variables.x == 1" }] },
  { validations: [{ expression: "request.object == null" }] },
  { validations: [{ expression: "true", messageExpression: "1" }] },
  { validations: [{ expression: "true", messageExpression: " " }] },
  {
    validations: [
      { expression: "true", messageExpression: "authorizer.path('/x') == null ? '' : ''" },
    ],
  },
  { validations: [{ expression: "true", message: "a\nb", reason: "Because" }] },
  { validations: [{ expression: "true", message: " " }] },
  {
    variables: [
      { name: "a b", expression: "1" },
      { name: "for", expression: "" },
      { name: "x", expression: "variables.y" },
      { name: "y", expression: "1 + 'a'" },
    ],
    validations: [{ expression: "variables.z == 1" }, { expression: "variables.y > 1" }],
  },
  {
    variables: [{ name: "s", expression: "'a'" }],
    validations: [{ expression: "variables.s > 1" }],
  },
  {
    auditAnnotations: [
      { key: "bad key", valueExpression: "1" },
      { key: "x", valueExpression: "" },
      { key: "x", valueExpression: "'a'" },
    ],
  },
  { paramKind: { apiVersion: "a/b/c", kind: "" }, validations: [{ expression: "true" }] },
  { paramKind: { apiVersion: "A/V", kind: "-x" }, validations: [{ expression: "true" }] },
  {
    validations: [{ expression: "true" }],
    matchConditions: [
      { name: "", expression: "" },
      { name: "a b", expression: "variables.x" },
      { name: "c", expression: "'x'" },
      { name: "c", expression: "true" },
    ],
  },
  { validations: [{ expression: "true" }], matchConstraints: null },
  { validations: [{ expression: "true" }], matchConstraints: {} },
  {
    failurePolicy: "Perhaps",
    validations: [{ expression: "authorizer.group('a').check('b').allowed()" }],
    matchConstraints: {
      matchPolicy: "Close",
      namespaceSelector: { matchExpressions: [{ key: "a", operator: "Near" }] },
      resourceRules: [
        {
          operations: ["*", "BURN"],
          apiGroups: [],
          apiVersions: [""],
          resources: ["*", "x"],
          resourceNames: ["a/b", "c", "c"],
        },
      ],
    },
  },
];

const BAD_MUTATIONS: readonly Fields[] = [
  {},
  applies(""),
  applies("1"),
  applies("Object{data: undefined}"),
  applies("Objekt{}"),
  applies("Object.spec{}"),
  patches("Object{}"),
  patches("[JSONPatch{op: 1}]"),
  patches("[JSONPatch{op: 'add', nothing: 1}]"),
  patches("[1]"),
  patches("[]"),
  patches("jsonpatch.escapeKey(1)"),
  { reinvocationPolicy: "Always", mutations: [{ patchType: "Merge" }, {}] },
  {
    reinvocationPolicy: "Never",
    mutations: [
      { patchType: "JSONPatch", applyConfiguration: { expression: "Object{}" } },
      { patchType: "ApplyConfiguration", jsonPatch: { expression: "[]" } },
    ],
  },
  applies("Object{}", {
    matchConstraints: { resourceRules: [{ ...CONFIG_MAP_RULES[0], operations: ["DELETE"] }] },
  }),
];

const BAD_BINDINGS: readonly Fields[] = [
  {},
  { policyName: "A b", validationActions: ["Deny", "Warn", "Warn", "Burn"] },
  {
    policyName: "x",
    validationActions: ["Deny"],
    paramRef: { name: "a/b", selector: { matchLabels: { "a b": "c" } } },
  },
  {
    policyName: "x",
    validationActions: ["Deny"],
    paramRef: { parameterNotFoundAction: "Perhaps" },
    matchResources: { resourceRules: [{}], matchPolicy: "Close" },
  },
];

function post(path: string, body: unknown, headers?: Record<string, string>): ApiRequest {
  return { method: "POST", path, body, ...(headers === undefined ? {} : { headers }) };
}

function definition(kind: string, name: string, spec: Fields): Fields {
  const apiVersion = "admissionregistration.k8s.io/v1";
  return { apiVersion, kind, metadata: { name }, spec };
}

function kindOf(path: string): string {
  return path === VALIDATING ? "ValidatingAdmissionPolicy" : "MutatingAdmissionPolicy";
}

function bindingsOf(path: string): string {
  return path.replace(/policies$/, "policybindings");
}

function configMap(name: string, fields: Fields, labels: Fields = {}): Fields {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels }, ...fields };
}

function setUp(path: string, { name, policy, binding = {} }: Case): ApiRequest[] {
  const matchConstraints = { resourceRules: CONFIG_MAP_RULES };
  const objectSelector = { matchLabels: { case: name } };
  const actions = path === VALIDATING ? { validationActions: ["Deny"] } : {};
  return [
    post(path, definition(kindOf(path), name, { matchConstraints, ...policy })),
    post(
      bindingsOf(path),
      definition(`${kindOf(path)}Binding`, `${name}-binding`, {
        policyName: name,
        matchResources: { objectSelector },
        ...actions,
        ...binding,
      }),
    ),
  ];
}

function judged({ name, objects, user }: Case): ApiRequest[] {
  const headers = user === undefined ? undefined : { "impersonate-user": user };
  return objects.map((fields, i) =>
    post(`${CONFIG_MAPS}?dryRun=All`, configMap(`${name}-${i}`, fields, { case: name }), headers),
  );
}

const RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

/** Objects that the cases need, and a user who may write ConfigMaps only. */
function world(): ApiRequest[] {
  const group = "rbac.authorization.k8s.io";
  const of = (kind: string) => ({
    apiVersion: `${group}/v1`,
    kind,
    metadata: { name: "writer" },
  });
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["*"] }];
  return [
    post(CONFIG_MAPS, configMap("limits", { data: { max: "1" } }, { limits: "yes" })),
    post(`${RBAC}/roles`, { ...of("Role"), rules: [{ ...rules[0], verbs: ["create"] }] }),
    post(`${RBAC}/rolebindings`, {
      ...of("RoleBinding"),
      roleRef: { apiGroup: group, kind: "Role", name: "writer" },
      subjects: [{ apiGroup: group, kind: "User", name: "writer" }],
    }),
  ];
}

function refused(): ApiRequest[] {
  const matchConstraints = { resourceRules: CONFIG_MAP_RULES };
  const specs = (path: string, all: readonly Fields[], kind: string): ApiRequest[] =>
    all.map((spec, i) => post(path, definition(kind, `bad-${i}`, spec)));
  const constrained = (all: readonly Fields[]) => all.map((one) => ({ matchConstraints, ...one }));
  return [
    ...specs(VALIDATING, constrained(BAD_POLICIES), "ValidatingAdmissionPolicy"),
    ...specs(MUTATING, constrained(BAD_MUTATIONS), "MutatingAdmissionPolicy"),
    ...specs(bindingsOf(VALIDATING), BAD_BINDINGS, "ValidatingAdmissionPolicyBinding"),
    ...specs(bindingsOf(MUTATING), BAD_BINDINGS, "MutatingAdmissionPolicyBinding"),
  ];
}

/** What is sent first, in order. */
export function preparations(): ApiRequest[] {
  return [
    ...world(),
    ...refused(),
    ...VALIDATING_CASES.flatMap((one) => setUp(VALIDATING, one)),
    ...MUTATING_CASES.flatMap((one) => setUp(MUTATING, one)),
    { method: "GET", path: `${MUTATING}/m-params` },
    {
      method: "GET",
      path: `${bindingsOf(VALIDATING)}?limit=500`,
      headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" },
    },
  ];
}

/** What is sent once the policies are in force. */
export function judgements(): ApiRequest[] {
  return [...VALIDATING_CASES, ...MUTATING_CASES].flatMap(judged);
}
