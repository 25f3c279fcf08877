/** APIServices of another server, and requests that go on to it, beside kube-apiserver. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { writeKubeApiFiles } from "../../support/kube-flags.ts";
import { SAMPLE_GROUP, sampleApiService, startSampleServer } from "../../support/sample-server.ts";
import type { Answer } from "../comparison.ts";
import { type ApiAccess, type ApiRequest, type ApiResponse, exchange } from "../rest/exchange.ts";
import { normalised } from "../rest/normalise.ts";
import { playLocal } from "./local.ts";

const API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices";
const SERVICES = "/api/v1/namespaces/default/services";
const ROOT = `/apis/${SAMPLE_GROUP}/v1`;
const LIMIT_MS = 30_000;
const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

type Fields = Readonly<Record<string, unknown>>;

const externalName = (name: string): ApiRequest => ({
  method: "POST",
  path: SERVICES,
  body: {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { type: "ExternalName", externalName: "127.0.0.1" },
  },
});

/** Specs that are refused. */
const BAD_SPECS: readonly Fields[] = [
  { group: "", version: "v2" },
  { group: "Bad_Group" },
  { version: "1" },
  { groupPriorityMinimum: 0 },
  { groupPriorityMinimum: 20_001 },
  { versionPriority: 1001 },
  { service: { namespace: "", name: "" } },
  { service: { namespace: "default", name: "x", port: 70_000 } },
  { insecureSkipTLSVerify: true },
  { service: undefined },
  { service: undefined, caBundle: undefined, insecureSkipTLSVerify: true },
];

/** Runs `body` with a server of ours, whose user is the one of withKubeApiserver. */
export async function withOurs<T>(body: (access: ApiAccess) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "aggregation-"));
  writeKubeApiFiles(dir, "admin", "admin-token");
  try {
    await using api = await startApiServer({ tokenAuthFile: join(dir, "tokens.csv") });
    return await body({ url: api.url, headers: { authorization: "Bearer admin-token" } });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The same requests to any server, and its answers. */
export async function play(access: ApiAccess): Promise<Answer[]> {
  const sample = await startSampleServer();
  const gone = await startSampleServer("gone.default.svc");
  const answers: Answer[] = [];
  const masked = (text: string): string =>
    text
      .replaceAll(String(sample.port), "11111")
      .replaceAll(String(gone.port), "22222")
      .replaceAll(sample.caBundle, "<ca>")
      .replaceAll(gone.caBundle, "<ca>")
      .replace(/\d+ bytes/g, "<size>")
      .replace(/"lastTransitionTime":"[^"]*"/g, '"lastTransitionTime":"<time>"');
  const ask = async (request: ApiRequest): Promise<void> => {
    const shown = { ...request, body: request.body };
    const response = normalised(withoutServersFields(await exchange(access, request)));
    answers.push({
      request: masked(JSON.stringify(shown)),
      response: JSON.parse(masked(JSON.stringify(response))) as ApiResponse,
    });
  };
  const get = (path: string, headers?: Readonly<Record<string, string>>): Promise<void> =>
    ask({ method: "GET", path, headers });
  const post = (body: unknown): Promise<void> => ask({ method: "POST", path: API_SERVICES, body });
  /** Waits until the condition of an APIService is there, and asks for it. */
  const settled = async (name: string): Promise<void> => {
    const path = `${API_SERVICES}/${name}`;
    const endMs = performance.now() + LIMIT_MS;
    while (performance.now() < endMs) {
      const { body } = await exchange(access, { method: "GET", path });
      const { status } = body as { status?: { conditions?: readonly unknown[] } };
      if ((status?.conditions ?? []).length > 0) break;
      await delay(50);
    }
    await get(path);
  };
  try {
    await ask(externalName("sample"));
    for (const spec of BAD_SPECS) await post(sampleApiService(sample, spec));
    await post({ ...sampleApiService(sample), metadata: { name: "v2.other" } });
    const other = (version: string, change: Fields): Promise<void> =>
      post(sampleApiService(sample, { version, ...change }));
    await post(sampleApiService(sample));
    await other("v2", { service: { namespace: "default", name: "absent" } });
    await other("v3", { service: { namespace: "default", name: "sample", port: 1 } });
    await other("v4", { caBundle: gone.caBundle });
    // Its address is not compared.
    const metadata = { name: "empty" };
    const empty = { metadata, spec: { ports: [{ name: "https", port: 443 }] } };
    await exchange(access, { method: "POST", path: SERVICES, body: empty });
    await other("v5", { service: { namespace: "default", name: "empty" } });
    await other("v6", { service: { namespace: "default", name: "empty", port: 444 } });
    await other("v7", { caBundle: undefined, insecureSkipTLSVerify: true });
    for (let i = 1; i <= 7; i++) await settled(`v${i}.${SAMPLE_GROUP}`);
    await get(`${API_SERVICES}/v3.${SAMPLE_GROUP}`, {
      accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
    });
    for (const path of ["", "/", "/widgets", "/namespaces/a/widgets/b%20c/echo?b=1&a=2&a=%2F"])
      await get(`${ROOT}${path}`);
    await ask({
      method: "POST",
      path: `${ROOT}/namespaces/a/widgets`,
      body: { kind: "Widget" },
      headers: { "x-remote-user": "mallory", "x-remote-extra-a": "b" },
    });
    await ask({
      method: "GET",
      path: `${ROOT}/widgets`,
      headers: {
        "impersonate-user": "jane",
        "impersonate-group": "system:masters",
        "impersonate-extra-example.com%2fa": "b c",
      },
    });
    for (const path of ["/teapot", "/moved"]) await get(`${ROOT}${path}`);
    for (let i = 2; i <= 6; i++) await get(`/apis/${SAMPLE_GROUP}/v${i}/widgets`);
    await get(`/apis/${SAMPLE_GROUP}/v9/widgets`);
    await get(`/apis/${SAMPLE_GROUP}/v9`);
    await get(`/apis/${SAMPLE_GROUP}`);
    await groups(access, answers);
    await sample.stop();
    await get(`${ROOT}/widgets`);
    await ask({ method: "DELETE", path: `${API_SERVICES}/v2.${SAMPLE_GROUP}` });
    await delay(500);
    await get(`/apis/${SAMPLE_GROUP}/v2/widgets`);
    return [...answers, ...(await playLocal(access))];
  } finally {
    await Promise.all([sample.stop(), gone.stop()]);
  }
}

interface Managed {
  readonly metadata?: { readonly managedFields?: readonly { readonly manager?: string }[] };
}

/** What the server writes itself has no managedFields here. */
function withoutServersFields(response: ApiResponse): ApiResponse {
  const of = <T extends Managed>(object: T): T => {
    const { managedFields } = object.metadata ?? {};
    if (managedFields === undefined) return object;
    const kept = managedFields.filter(({ manager }) => manager !== "kube-apiserver");
    return { ...object, metadata: { ...object.metadata, managedFields: kept } };
  };
  const body = response.body as Managed & { rows?: readonly { readonly object: Managed }[] };
  if (typeof body !== "object" || body === null) return response;
  const { rows } = body;
  if (rows === undefined) return { ...response, body: of(body) };
  return {
    ...response,
    body: { ...body, rows: rows.map((row) => ({ ...row, object: of(row.object) })) },
  };
}

interface Groups {
  readonly items: readonly { readonly metadata: { readonly name?: string } }[];
}

/** The group in the document of all, once the other server's documents are read. */
async function groups(access: ApiAccess, answers: Answer[]): Promise<void> {
  const endMs = performance.now() + LIMIT_MS;
  for (;;) {
    const headers = { accept: AGGREGATED };
    const { body } = await exchange(access, { method: "GET", path: "/apis", headers });
    const found = (body as Groups).items.find(({ metadata }) => metadata.name === SAMPLE_GROUP);
    if (JSON.stringify(found).includes("widgets") || performance.now() > endMs) {
      answers.push({ request: "discovery", response: normalised({ status: 200, body: found }) });
      return;
    }
    await delay(100);
  }
}
