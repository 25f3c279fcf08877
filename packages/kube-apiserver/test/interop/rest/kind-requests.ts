/** Secrets, service accounts, leases and events. */
import {
  ACCOUNTS,
  AS_TABLE,
  account,
  deleteOptions,
  EVENTS,
  event,
  GROUP_EVENTS,
  groupEvent,
  LEASES,
  lease,
  SECRETS,
  secret,
} from "./objects.ts";
import type { Step } from "./step.ts";

const post =
  (path: string) =>
  (body: unknown): Step => ({ method: "POST", path, body });
const put =
  (path: string) =>
  (body: { readonly metadata: Readonly<Record<string, unknown>> }): Step => ({
    method: "PUT",
    path: `${path}/${body.metadata["name"]}`,
    body,
  });
const get = (path: string): Step => ({ method: "GET", path });
const table = (path: string): Step => ({ method: "GET", path, headers: AS_TABLE });

function secretRequests(): Step[] {
  const json = (text: string) =>
    secret("s3", {
      type: "kubernetes.io/dockerconfigjson",
      stringData: { ".dockerconfigjson": text },
    });
  const typed = (type: string, stringData: object = {}) =>
    secret("s4", { type: `kubernetes.io/${type}`, stringData });
  return [
    ...[
      secret("s1", { stringData: { a: "b" }, data: { a: "eA==", c: "eQ==" } }),
      ...["service-account-token", "dockercfg", "basic-auth", "tls"].map((type) => typed(type)),
      typed("ssh-auth", { "ssh-privatekey": "" }),
      ...["x{", "", '{"a":', '{"a":1,}', "[1]", "7"].map(json),
      secret("s7", { data: { "a b": "eA==" } }),
      secret("s8", { data: { a: "not base64" } }),
    ].map(post(SECRETS)),
    ...[
      secret("s1", { type: "kubernetes.io/tls" }),
      secret("s1", { immutable: true }),
      secret("s1", { stringData: { n: "b" } }),
      secret("s1", { type: "foo", data: { n: "eA==" }, immutable: true }),
    ].map(put(SECRETS)),
    table(SECRETS),
    get(`${SECRETS}?fieldSelector=type%3DOpaque`),
  ];
}

function accountRequests(): Step[] {
  const annotations = { "kubernetes.io/enforce-mountable-secrets": "true" };
  const references = {
    secrets: [{ name: "x", namespace: "y", kind: "z" }],
    imagePullSecrets: [{ name: "p" }],
    automountServiceAccountToken: false,
  };
  return [
    post(ACCOUNTS)(account("sa1", references, { annotations })),
    put(ACCOUNTS)(account("sa1", {}, { annotations })),
    post(ACCOUNTS)(account("SA_1")),
    table(`${ACCOUNTS}/sa1`),
    { method: "DELETE", path: `${ACCOUNTS}/sa1` },
  ];
}

function leaseRequests(): Step[] {
  const spec = {
    holderIdentity: "me",
    leaseDurationSeconds: 15,
    preferredHolder: "x",
    renewTime: "2026-01-02T03:04:05.123456Z",
    strategy: "OldestEmulationVersion",
  };
  return [
    post(LEASES)(lease("l1", { spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } })),
    post(LEASES)(lease("l1", { spec })),
    post(LEASES)(lease("l4", { spec: { renewTime: "yesterday" } })),
    ...[
      lease("l1", { spec: {} }),
      lease("l2", { spec: {} }),
      lease("l3", { spec: {} }, { resourceVersion: "7" }),
    ].map(put(LEASES)),
    table(LEASES),
  ];
}

const POD = { kind: "Pod", namespace: "t", name: "p" };
const EVENT_TIME = "2026-01-02T03:04:05.000001Z";
const GOOD = {
  eventTime: EVENT_TIME,
  regarding: POD,
  related: { kind: "X", name: "y" },
  action: "A",
  reason: "R",
  note: "N",
  type: "Normal",
  reportingInstance: "i",
  reportingController: "example.org/c",
  series: { count: 2, lastObservedTime: "2026-01-02T03:04:06.000001Z" },
};

function eventRequests(): Step[] {
  const long = "x".repeat(129);
  const old = {
    involvedObject: POD,
    reason: "R",
    message: " m ",
    type: "Normal",
    count: 3,
    firstTimestamp: "2020-01-02T03:04:05Z",
    lastTimestamp: "2020-01-02T03:04:05Z",
    source: { component: "c", host: "h" },
  };
  const tooLong = {
    involvedObject: POD,
    eventTime: EVENT_TIME,
    reportingComponent: "a/b/c",
    reportingInstance: long,
    action: long,
    reason: long,
    message: "x".repeat(1025),
  };
  const deprecated = {
    deprecatedCount: 3,
    deprecatedSource: { component: "c" },
    deprecatedFirstTimestamp: "2026-01-02T03:04:06Z",
    deprecatedLastTimestamp: "2026-01-02T03:04:06Z",
  };
  const { related: _, ...unrelated } = GOOD;
  return [
    ...[
      event("e1", old),
      event("e2", { involvedObject: { ...POD, namespace: "other" } }),
      event("e3", { involvedObject: { kind: "Node", name: "n" } }),
      event("e4", { involvedObject: POD, eventTime: EVENT_TIME }),
      event("e5", tooLong),
    ].map(post(EVENTS)),
    ...[
      groupEvent("f1", { regarding: POD }),
      groupEvent("f2", GOOD),
      groupEvent("f3", { ...GOOD, ...deprecated, type: "Foo", series: { count: 1 } }),
    ].map(post(GROUP_EVENTS)),
    get(`${EVENTS}/f2`),
    get(`${GROUP_EVENTS}/e1`),
    get(`${GROUP_EVENTS}/none`),
    put(GROUP_EVENTS)(
      groupEvent("f2", { ...unrelated, action: "B", regarding: { ...POD, name: "q" } }),
    ),
    put(GROUP_EVENTS)(groupEvent("f9", unrelated)),
    put(EVENTS)(event("e1", { involvedObject: POD, reason: "R2" })),
    table(EVENTS),
    table(GROUP_EVENTS),
    get(`${EVENTS}?fieldSelector=involvedObject.kind%3DPod,source%3Dexample.org%2Fc`),
    {
      method: "DELETE",
      path: `${EVENTS}/e1`,
      body: deleteOptions({ propagationPolicy: "Foreground" }),
    },
    { method: "DELETE", path: `${GROUP_EVENTS}/f2` },
  ];
}

export function kindRequests(): Step[] {
  return [...secretRequests(), ...accountRequests(), ...leaseRequests(), ...eventRequests()];
}
