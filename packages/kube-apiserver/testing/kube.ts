/**
 * An API server for one test file:
 *
 *     const kube = await testKube({ definitions: ["config/crd/bases"] });
 *     after(() => kube.stop());
 *     afterEach(() => kube.reset());
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@quorate/client";
import { issueCertificate, makeAuthority, type Pair } from "@quorate/host/node";
import { type KubeObject, writeYaml } from "@quorate/kube-storage";
import { loadAll } from "js-yaml";
import type { JsonRequest, JsonResponse } from "../node/json-client.ts";
import { startApiServer } from "../node/start.ts";
import type { ChaosFault } from "../src/chaos/chaos.ts";
import { chaosSettingsOf } from "../src/chaos/settings.ts";
import { CONTROLLERS } from "../src/controllers/controllers.ts";
import { type Point, pointOf, returnTo } from "./points.ts";

export interface KubeOptions {
  /** Files and directories of YAML or JSON, and URLs: their definitions of custom resources. */
  readonly definitions?: readonly string[];
  /** Faults by seed, as --chaos has them: "seed=7,stale-lists=0.3,agent=my-controller". */
  readonly chaos?: string;
  /** Told of each fault. */
  readonly onFault?: (fault: ChaosFault) => void;
  /** Run the controllers of garbage, namespaces and accounts; envtest has none. Default: yes. */
  readonly controllers?: boolean;
}

/** Where webhooks of a test listen, with the certificate that the server expects of them. */
export interface LocalWebhooks {
  readonly port: number;
  /** PEM, for node:https. */
  readonly cert: string;
  readonly key: string;
}

/** The server of a KubeTest. */
interface Served {
  readonly url: string;
  readonly kubeconfig: string;
  readonly kubeconfigPath: string;
  readonly store: Client;
  request(path: string, request?: JsonRequest): Promise<JsonResponse>;
  stop(): Promise<void>;
}

export interface Waited {
  /** What is waited for, in the error's text. */
  readonly what?: string;
  /** Default: 10 s. */
  readonly timeoutMs?: number;
}

// biome-ignore lint/suspicious/noExplicitAny: an object of any kind
type Any = any;

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const HOOKS = "/apis/admissionregistration.k8s.io/v1";
/** Times between two looks. */
const LOOK_MS = 20;
const DAY_MS = 24 * 3_600_000;
/** The point of the start. */
const START = "";

/** Starts a server on a free port of 127.0.0.1. Resolves when its definitions are served. */
export async function testKube(options: KubeOptions = {}): Promise<KubeTest> {
  const { definitions = [], chaos, onFault, controllers = true } = options;
  const api = await startApiServer({
    controllers: controllers ? CONTROLLERS : [],
    chaos: chaos === undefined ? undefined : chaosSettingsOf(chaos),
    onFault,
  });
  const kube = new KubeTest(api);
  try {
    await kube.define(...definitions);
    await kube.mark(START);
    return kube;
  } catch (error) {
    await kube.stop();
    throw error;
  }
}

export class KubeTest implements AsyncDisposable {
  readonly #api: Served;
  readonly #points = new Map<string, Point>();
  #webhookPair: Promise<{ readonly ca: Pair; readonly server: Pair }> | undefined;

  /** Use testKube. */
  constructor(api: Served) {
    this.#api = api;
  }

  get url(): string {
    return this.#api.url;
  }

  /** Of a user in system:masters: text, and the file that has it. */
  get kubeconfig(): string {
    return this.#api.kubeconfig;
  }

  get kubeconfigPath(): string {
    return this.#api.kubeconfigPath;
  }

  /**
   * Sends a request, and resolves with the object of its response.
   * Rejects with Error, with the server's text, for statuses from 400.
   */
  async request(path: string, request: JsonRequest = {}): Promise<Any> {
    const { status, body } = await this.#api.request(path, request);
    if (status < 400) return body;
    const method = request.method ?? (request.body === undefined ? "GET" : "POST");
    throw new Error(`${method} ${path}: ${status} ${body.message ?? body}`);
  }

  /** Creates the definitions in files, directories and URLs; resolves when they are served. */
  async define(...places: readonly string[]): Promise<void> {
    const objects = (await Promise.all(places.map(objectsAt))).flat();
    const definitions = objects.filter(({ kind }) => kind === "CustomResourceDefinition");
    if (places.length > 0 && definitions.length === 0)
      throw new Error(`no CustomResourceDefinition is in ${places.join(", ")}`);
    for (const body of definitions) await this.request(DEFINITIONS, { body });
    for (const { metadata } of definitions)
      await this.until(
        `${DEFINITIONS}/${metadata.name}`,
        ({ status }) => isTrue(status, "Established"),
        { what: `${metadata.name} is established` },
      );
  }

  /**
   * Creates the webhook configurations in files, directories and URLs, whose services are the
   * port of this machine, with a certificate for it.
   */
  async webhooks(port: number, ...places: readonly string[]): Promise<LocalWebhooks> {
    const { ca, server } = await (this.#webhookPair ??= webhookPair());
    const caBundle = Buffer.from(ca.certPem).toString("base64");
    for (const object of (await Promise.all(places.map(objectsAt))).flat()) {
      if (!/^(?:Mutating|Validating)WebhookConfiguration$/.test(object.kind)) continue;
      const webhooks = object["webhooks"] as Any[];
      const local = webhooks.map((hook) => {
        const path = hook.clientConfig.service?.path ?? URL.parse(hook.clientConfig.url)?.pathname;
        const url = new URL(path ?? "/", `https://127.0.0.1:${port}`).href;
        return { ...hook, clientConfig: { url, caBundle } };
      });
      const resource = `${object.kind.toLowerCase()}s`;
      await this.request(`${HOOKS}/${resource}`, { body: { ...object, webhooks: local } });
    }
    return { port, cert: server.certPem, key: server.keyPem };
  }

  /** Notes all objects as they are now. */
  async mark(name: string): Promise<void> {
    this.#points.set(name, await pointOf(this.#api.store));
  }

  /**
   * Brings all objects back to the point, by default to the start after `definitions`. Controllers
   * of the test see it as changes.
   */
  async reset(name: string = START): Promise<void> {
    const point = this.#points.get(name);
    if (point === undefined) throw new Error(`no point is marked as ${JSON.stringify(name)}`);
    await returnTo(this.#api.store, point);
  }

  /** Objects as YAML, of one path or a collection's, without what differs in each run. */
  async snapshot(path: string): Promise<string> {
    const found = await this.request(path);
    const objects: Any[] = found.items ?? [found];
    return (await Promise.all(objects.map((one) => yamlOf(withoutRun(one))))).join("---\n");
  }

  /**
   * Looks at an object or a list until it is as expected; resolves with it.
   * Rejects after the time with what was seen last.
   */
  until(path: string, holds: (seen: Any) => unknown, waited: Waited = {}): Promise<Any> {
    const isSeen = async ({ status, body }: JsonResponse) => status < 400 && (await holds(body));
    return this.#until(path, isSeen, { what: "it is as expected", ...waited });
  }

  /** Looks until the object is gone. */
  async untilGone(path: string, waited: Waited = {}): Promise<void> {
    await this.#until(path, ({ status }) => status === 404, { what: "it is gone", ...waited });
  }

  async #until(
    path: string,
    holds: (seen: JsonResponse) => unknown,
    { what, timeoutMs = 10_000 }: Waited,
  ): Promise<Any> {
    const endMs = performance.now() + timeoutMs;
    for (;;) {
      const seen = await this.#api.request(path);
      if (await holds(seen)) return seen.body;
      if (performance.now() > endMs) {
        const last = await yamlOf(seen.body);
        throw new Error(`not within ${timeoutMs} ms: ${what}. ${path} was last:\n${last}`);
      }
      await delay(LOOK_MS);
    }
  }

  stop(): Promise<void> {
    return this.#api.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

function isTrue(status: Any, condition: string): boolean {
  return (status?.conditions ?? []).some(
    (one: Any) => one.type === condition && one.status === "True",
  );
}

/** The objects in a file, in the files of a directory by their names, or behind a URL. */
async function objectsAt(place: string): Promise<(KubeObject & Record<string, unknown>)[]> {
  if (/^https?:\/\//.test(place)) {
    const response = await fetch(place);
    if (!response.ok) throw new Error(`${place}: ${response.status} ${response.statusText}`);
    return objectsIn(await response.text(), place);
  }
  if (!statSync(place).isDirectory()) return objectsIn(readFileSync(place, "utf8"), place);
  const names = readdirSync(place).filter((name) => /\.(?:ya?ml|json)$/.test(name));
  const files = names.sort().map((name) => join(place, name));
  return files.flatMap((file) => objectsIn(readFileSync(file, "utf8"), file));
}

function objectsIn(text: string, place: string): (KubeObject & Record<string, unknown>)[] {
  try {
    const documents = loadAll(text) as (Any | null | undefined)[];
    return documents.filter((value) => value !== null && value !== undefined);
  } catch (error) {
    throw new Error(`${place}: ${(error as Error).message}`, { cause: error });
  }
}

async function webhookPair(): Promise<{ ca: Pair; server: Pair }> {
  const validity = { fromMs: Date.now() - DAY_MS, untilMs: Date.now() + 365 * DAY_MS };
  const ca = await makeAuthority("webhooks of a test", validity);
  const subject = {
    commonName: "webhooks",
    organizations: [],
    hosts: ["127.0.0.1", "localhost"],
    usage: "server",
  } as const;
  return { ca, server: await issueCertificate(ca, subject, validity) };
}

async function yamlOf(value: unknown): Promise<string> {
  const text = await writeYaml(value);
  return typeof text === "string" ? text : new TextDecoder().decode(text);
}

/** Fields that the server gives, other ones in each run. */
const OF_THE_RUN = ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"];

function withoutRun({ metadata, ...rest }: Any): Any {
  const kept = Object.entries(metadata).filter(([name]) => !OF_THE_RUN.includes(name));
  return sorted({ ...rest, metadata: Object.fromEntries(kept) });
}

/** The names of maps in order, as those of equal objects may not be. */
function sorted(value: Any): Any {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, one]) => [name, sorted(one)]));
}
