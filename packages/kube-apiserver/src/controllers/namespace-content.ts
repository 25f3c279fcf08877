/**
 * What every namespace has: the ServiceAccount "default" and the ConfigMap "kube-root-ca.crt"
 * (Kubernetes: pkg/controller/serviceaccount, pkg/controller/certificates/rootcacertpublisher).
 */
import type { Clock, Logger } from "@quorate/host";
import type { KubeObject } from "@quorate/kube-storage";
import { ApiError, semanticEqual } from "@quorate/kube-storage";
import {
  isAlreadyExists,
  isNotFound,
  type LocalClient,
  type ResourceRef,
} from "../informers/local-client.ts";
import { WorkQueue } from "./work-queue.ts";

export const ROOT_CA_NAME = "kube-root-ca.crt";
export const DEFAULT_SERVICE_ACCOUNT = "default";
export const MAX_CONTENT_KEYS = 100_000;

const SERVICE_ACCOUNTS: ResourceRef = { group: "", version: "v1", resource: "serviceaccounts" };
const CONFIG_MAPS: ResourceRef = { group: "", version: "v1", resource: "configmaps" };
const ROOT_CA_ANNOTATIONS = {
  "kubernetes.io/description":
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal " +
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is " +
    "guaranteed across distributions of Kubernetes clusters.",
};

export interface NamespaceContentOptions {
  /** Of the server's own certificate; "" for none: no ConfigMap is written. */
  readonly rootCaPem: string;
  readonly makesServiceAccounts: boolean;
}

export interface NamespaceContentDependencies {
  readonly client: LocalClient;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The present namespaces; read for each of them. */
  namespace(name: string): KubeObject | undefined;
  namespaces(): Iterable<KubeObject>;
}

export class NamespaceContent {
  readonly #deps: NamespaceContentDependencies;
  readonly #options: NamespaceContentOptions;
  readonly #queue: WorkQueue<string>;

  constructor(options: NamespaceContentOptions, deps: NamespaceContentDependencies) {
    this.#deps = deps;
    this.#options = options;
    this.#queue = new WorkQueue(
      {
        name: "contents of namespaces",
        concurrency: 4,
        maxKeys: MAX_CONTENT_KEYS,
        process: (name) => this.#process(name),
        rescan: () => {
          for (const namespace of deps.namespaces()) this.check(namespace.metadata.name ?? "");
        },
      },
      deps.clock,
      deps.logger,
    );
  }

  /** Call it with each namespace that is new, or whose contents of these names changed. */
  check(namespace: string): void {
    this.#queue.add(namespace);
  }

  stop(): void {
    this.#queue.stop();
  }

  async #process(name: string): Promise<boolean> {
    const namespace = this.#deps.namespace(name);
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) return true;
    try {
      if (this.#options.makesServiceAccounts) await this.#ensureServiceAccount(name);
      await this.#ensureRootCa(name);
    } catch (error) {
      // The namespace is being deleted, or gone.
      if (isNotFound(error) || isTerminating(error)) return true;
      throw error;
    }
    return true;
  }

  async #ensureServiceAccount(namespace: string): Promise<void> {
    const { client } = this.#deps;
    const name = DEFAULT_SERVICE_ACCOUNT;
    if ((await client.get(SERVICE_ACCOUNTS, namespace, name)) !== undefined) return;
    await created(
      client.create(SERVICE_ACCOUNTS, namespace, {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { name, namespace },
      }),
    );
  }

  async #ensureRootCa(namespace: string): Promise<void> {
    const { rootCaPem } = this.#options;
    if (rootCaPem === "") return;
    const { client } = this.#deps;
    const name = ROOT_CA_NAME;
    const data = { "ca.crt": rootCaPem };
    const present = await client.get(CONFIG_MAPS, namespace, name);
    if (present === undefined) {
      const annotations = ROOT_CA_ANNOTATIONS;
      const metadata = { name, namespace, annotations };
      await created(
        client.create(CONFIG_MAPS, namespace, {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata,
          data,
        }),
      );
    } else if (!semanticEqual(present["data"], data)) {
      await client.update(CONFIG_MAPS, namespace, name, (it) => ({ ...it, data }));
    }
  }
}

/** Another server may be first. */
async function created(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

function isTerminating(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.details?.causes?.some(({ reason }) => reason === "NamespaceTerminating") ?? false;
}
