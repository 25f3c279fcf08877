/** The life of namespaces. */
import { AS_TABLE, deleteOptions, NAMESPACES, namespace } from "./objects.ts";
import type { Step } from "./step.ts";

const N2 = `${NAMESPACES}/n2`;

export function namespaceRequests(): Step[] {
  const post = (body: unknown): Step => ({ method: "POST", path: NAMESPACES, body });
  const put = (path: string, body: unknown): Step => ({ method: "PUT", path, body });
  const get = (path: string): Step => ({ method: "GET", path });
  const remove = (path: string, options?: object): Step => ({
    method: "DELETE",
    path,
    body: options === undefined ? undefined : deleteOptions(options),
  });
  return [
    post(namespace("n1.x")),
    post(namespace("n".repeat(64))),
    post(namespace("n2", { spec: { finalizers: ["foo"] } })),
    post(
      namespace(
        "n2",
        { spec: { finalizers: ["example.org/foo"] }, status: { phase: "Terminating" } },
        { finalizers: ["example.org/m"], labels: { "kubernetes.io/metadata.name": "x" } },
      ),
    ),
    put(N2, namespace("n2", { spec: { finalizers: [] } })),
    put(`${N2}/status`, namespace("n2", { status: { phase: "Terminating" } })),
    put(`${N2}/finalize`, namespace("n2", { spec: { finalizers: ["foo", "kubernetes"] } })),
    remove(N2, { preconditions: { uid: "x" } }),
    remove(N2, { preconditions: { resourceVersion: "1" } }),
    remove(`${N2}?dryRun=All`),
    { method: "GET", path: N2, headers: AS_TABLE },
    remove(NAMESPACES),
    remove(`${NAMESPACES}/default`),
    get(`${NAMESPACES}/nope`),
    { method: "POST", path: `${NAMESPACES}/nope/configmaps`, body: { metadata: { name: "x" } } },
  ];
}
