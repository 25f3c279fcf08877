/** APIServices of the groups that a server serves itself, and of those of definitions. */
import { setTimeout as delay } from "node:timers/promises";
import type { Answer } from "../comparison.ts";
import { type ApiAccess, type ApiRequest, exchange } from "../rest/exchange.ts";

const API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices";
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP = "local.example.com";
const DEFINITION = `${DEFINITIONS}/things.${GROUP}`;
/** The stored answers are of 1.36. */
const SINCE_1_37 = "storagemigration.k8s.io";
const LIMIT_MS = 30_000;
/** What a server has left alone for so long is left alone. */
const QUIET_MS = 1500;

interface ApiService {
  readonly code?: number;
  readonly metadata: { readonly name: string; readonly labels?: unknown };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: { readonly conditions?: readonly Readonly<Record<string, unknown>>[] };
}

/** What counts of one; its code where there is none. */
function shown({ code, metadata, spec, status }: ApiService): unknown {
  if (code !== undefined) return code;
  const conditions = status?.conditions?.map(({ lastTransitionTime: _, ...others }) => others);
  const { name, labels } = metadata;
  return { name, ...(labels === undefined ? {} : { labels }), spec, conditions };
}

const version = (name: string, storage: boolean, served = true) => ({
  name,
  served,
  storage,
  schema: { openAPIV3Schema: { type: "object" } },
});

/** Creates, changes and deletes a definition and its APIServices. */
export async function playLocal(access: ApiAccess): Promise<Answer[]> {
  const answers: Answer[] = [];
  const send = (request: ApiRequest) => exchange(access, request);
  const patch = (path: string, body: unknown) =>
    send({
      method: "PATCH",
      path,
      body,
      headers: { "content-type": "application/merge-patch+json" },
    });
  const read = async (name: string): Promise<ApiService> =>
    (await send({ method: "GET", path: `${API_SERVICES}/${name}` })).body as ApiService;
  /** Waits until it holds, and keeps what is there then. */
  const note = async (
    what: string,
    name: string,
    holds: (one: ApiService) => boolean,
  ): Promise<void> => {
    const endMs = performance.now() + LIMIT_MS;
    let one = await read(name);
    for (; !holds(one) && performance.now() < endMs; one = await read(name)) await delay(50);
    answers.push({ request: what, response: { status: 200, body: shown(one) } });
  };
  const isThere = ({ code, status }: ApiService): boolean =>
    code === undefined && (status?.conditions ?? []).length > 0;
  const isGone = ({ code }: ApiService): boolean => code === 404;
  const first = `v1.${GROUP}`;
  const second = `v2.${GROUP}`;
  const versions = (isSecondServed: boolean) => [
    version("v1", true),
    version("v2", false, isSecondServed),
  ];

  const list = await send({ method: "GET", path: API_SERVICES });
  const builtIn = (list.body as { readonly items: readonly ApiService[] }).items
    .filter(({ spec }) => spec["service"] === undefined && spec["group"] !== SINCE_1_37)
    .map(shown);
  answers.push({ request: "local APIServices", response: { status: list.status, body: builtIn } });

  const names = { kind: "Thing", listKind: "ThingList", plural: "things", singular: "thing" };
  const spec = { group: GROUP, scope: "Namespaced", names, versions: versions(false) };
  const head = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" };
  const definition = { ...head, metadata: { name: `things.${GROUP}` }, spec };
  await send({ method: "POST", path: DEFINITIONS, body: definition });
  await note("a definition came", first, isThere);
  await note("its version that is not served", second, isGone);
  await patch(DEFINITION, { spec: { versions: versions(true) } });
  await note("the version is served", second, isThere);

  await patch(`${API_SERVICES}/${first}`, { spec: { groupPriorityMinimum: 5 } });
  await note("a change is taken back", first, (one) => one.spec["groupPriorityMinimum"] !== 5);
  await send({ method: "DELETE", path: `${API_SERVICES}/${first}` });
  await note("it comes again", first, isThere);
  const unmanaged = { "kube-aggregator.kubernetes.io/automanaged": null };
  await patch(`${API_SERVICES}/${first}`, { metadata: { labels: unmanaged } });
  await patch(`${API_SERVICES}/${first}`, { spec: { versionPriority: 7 } });
  await patch(`${API_SERVICES}/v1.apps`, { spec: { versionPriority: 7 } });
  await patch(DEFINITION, { spec: { versions: versions(false) } });
  await note("the version is served no more", second, isGone);
  await delay(QUIET_MS);
  await note("one without the label stays as it is", first, isThere);
  await note("so does a built-in one until the next start", "v1.apps", isThere);
  await send({ method: "DELETE", path: DEFINITION });
  await delay(QUIET_MS);
  await note("the definition went, and what nobody manages stays", first, isThere);
  return answers;
}
