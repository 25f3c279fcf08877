/** Creates, updates and deletions, with what is refused. */
import { AS_TABLE, CONFIG_MAPS, configMap, deleteOptions, OWN, type Sent } from "./objects.ts";
import type { Step } from "./step.ts";

const A = `${CONFIG_MAPS}/a`;
const Z = `${CONFIG_MAPS}/z`;

const post = (body: unknown, query = ""): Step => ({
  method: "POST",
  path: CONFIG_MAPS + query,
  body,
});
const put = (path: string, body: unknown): Step => ({ method: "PUT", path, body });
const remove = (path: string, options?: object): Step => ({
  method: "DELETE",
  path,
  body: options === undefined ? undefined : deleteOptions(options),
});
const get = (path: string): Step => ({ method: "GET", path });

/** PUT of the present object with other metadata. */
function putMetadata(path: string, metadata: object): Step {
  return (last) => {
    const object = last(path) as Sent;
    return {
      method: "PUT",
      path,
      body: { ...object, metadata: { ...object.metadata, ...metadata } },
    };
  };
}

function creates(): Step[] {
  const bad = {
    labels: { "a b": "c d" },
    annotations: { "/x": "y" },
    finalizers: ["f g"],
    ownerReferences: [{ apiVersion: "v1", kind: "Event", name: "e", uid: "" }],
  };
  return [
    post({ apiVersion: "v1", kind: "ConfigMap", metadata: {} }),
    post(configMap("a", { data: { k: "v" } })),
    post(configMap("a")),
    post(configMap("rv", {}, { resourceVersion: "5" })),
    post(configMap("Bad_Name")),
    post(configMap("x".repeat(260))),
    post(configMap("bad", {}, bad)),
    post(configMap("bad", {}, { namespace: "other" })),
    post(configMap("bad", { data: { "..": "d" } })),
    post(configMap("bad", { data: { dup: "a" }, binaryData: { dup: "YQ==" } })),
    post({ apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "gen-" } }),
    post({ apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "Gen_" } }),
    post(configMap("big", { data: { big: "x".repeat(1024 * 1024 + 1) } })),
    post(configMap("ann", {}, { annotations: { big: "x".repeat(256 * 1024 + 1) } })),
    post(configMap("dry"), "?dryRun=All"),
    post(configMap("a"), "?dryRun=All"),
    post(
      configMap(
        "dry",
        {},
        {
          resourceVersion: "7",
          uid: "x",
          generation: 5,
          selfLink: "/x",
          deletionTimestamp: "2020-01-01T00:00:00Z",
          creationTimestamp: "2020-01-01T00:00:00Z",
        },
      ),
      "?dryRun=All",
    ),
  ];
}

function updates(): Step[] {
  return [
    put(A, configMap("a", {}, { resourceVersion: "1" })),
    put(A, configMap("b")),
    put(`${CONFIG_MAPS}/nope`, configMap("nope")),
    put(`${CONFIG_MAPS}/nope`, configMap("nope", {}, { uid: "123" })),
    put(A, configMap("a", {}, { resourceVersion: "abc" })),
    put(A, configMap("a", {}, { uid: "123" })),
    put(A, configMap("a", { data: { "a/b": "c" } }, { generation: 7, labels: { "a b": "c" } })),
    put(A, configMap("a", {}, { deletionGracePeriodSeconds: 3 })),
    put(A, configMap("a", { immutable: true, data: { x: "1" } })),
    put(A, configMap("a", { data: { x: "2" } })),
    put(
      `${A}?dryRun=All`,
      configMap("a", { immutable: true, data: { x: "1" } }, { labels: { l: "v" } }),
    ),
    put(`${A}?dryRun=Some`, configMap("a")),
    put(`${A}?fieldValidation=Foo`, configMap("a")),
    put(`${A}?fieldManager=${"x".repeat(129)}`, configMap("a")),
    get(A),
  ];
}

function deletions(): Step[] {
  return [
    remove(A, { preconditions: { uid: "nope" } }),
    remove(A, { preconditions: { resourceVersion: "1" } }),
    remove(A, { propagationPolicy: "Foo" }),
    remove(A, { propagationPolicy: "Orphan", orphanDependents: true }),
    remove(`${A}?gracePeriodSeconds=x`),
    remove(`${A}?dryRun=All`),
    // Dry runs only: where a garbage collector runs, it removes its finalizers at any time.
    remove(A, { propagationPolicy: "Foreground", dryRun: ["All"] }),
    remove(A, { propagationPolicy: "Orphan", dryRun: ["All"] }),
    remove(A, { orphanDependents: true, dryRun: ["All"] }),
    putMetadata(A, { finalizers: ["example.org/f"] }),
    remove(A),
    get(A),
    remove(A),
    remove(A, { propagationPolicy: "Orphan", dryRun: ["All"] }),
    putMetadata(A, { finalizers: ["example.org/x", "foregroundDeletion"] }),
    putMetadata(A, { deletionGracePeriodSeconds: 7 }),
    post(configMap("a")),
    putMetadata(A, { finalizers: [] }),
    get(A),
    post(configMap("z", { data: { k: "v" } })),
    { method: "GET", path: `${CONFIG_MAPS}?${OWN}`, headers: AS_TABLE },
    { method: "GET", path: Z, headers: AS_TABLE },
    remove(Z, {}),
    post(configMap("c", {}, { labels: { del: "me" } })),
    post(configMap("d", {}, { labels: { del: "me" }, finalizers: ["example.org/f"] })),
    remove(`${CONFIG_MAPS}?labelSelector=del%3Dme&dryRun=All`),
    remove(`${CONFIG_MAPS}?labelSelector=del%3Dme`),
    get(`${CONFIG_MAPS}/d`),
    remove(`${CONFIG_MAPS}/d`),
    { method: "POST", path: `${CONFIG_MAPS}/x`, body: configMap("x") },
    put(CONFIG_MAPS, configMap("x")),
    { method: "POST", path: "/api/v1/configmaps", body: configMap("x") },
    get(`${CONFIG_MAPS}/a%25b`),
  ];
}

export function configMapRequests(): Step[] {
  return [...creates(), ...updates(), ...deletions()];
}
