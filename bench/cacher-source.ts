/** A storage that lists and watches objects of some 1 KiB, at no cost of its own. */
import type {
  AttributesOf,
  KubeObject,
  ListOptions,
  ListResult,
  StorageInterface,
  StoredObject,
  Watch,
  WatchListener,
} from "@quorate/kube-storage";
import { fromUtf8, toUtf8 } from "@quorate/proto";

export const PREFIX = "/widgets";
export const KIND = { group: "", version: "v1", kind: "Widget" };
const NAMESPACES = 5;
const COLORS = ["red", "green", "blue", "white"];

export const benchAttributes: AttributesOf = ({ metadata }) => ({
  labels: metadata.labels ?? {},
  fields: {
    "metadata.name": metadata.name ?? "",
    "metadata.namespace": metadata.namespace ?? "",
  },
});

export function keyOf(i: number): string {
  return `${PREFIX}/ns${i % NAMESPACES}/widget-${String(i).padStart(6, "0")}`;
}

function textOf(i: number, revision: number): string {
  const [, , namespace, name] = keyOf(i).split("/");
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Widget",
    metadata: {
      name,
      namespace,
      uid: `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`,
      resourceVersion: String(revision),
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: { app: "bench", color: COLORS[i % COLORS.length] },
    },
    data: { text: "x".repeat(700), revision },
  });
}

/** Keeps only its bytes, as objects of the store do after they have been read once. */
class BenchObject implements StoredObject {
  readonly key: string;
  readonly resourceVersion: number;
  readonly #bytes: Uint8Array;

  constructor(i: number, revision: number) {
    this.key = keyOf(i);
    this.resourceVersion = revision;
    this.#bytes = fromUtf8(textOf(i, revision));
  }

  get sizeBytes(): number {
    return this.#bytes.length;
  }

  object(): KubeObject {
    return JSON.parse(toUtf8(this.#bytes)) as KubeObject;
  }

  json(): Uint8Array {
    return this.#bytes;
  }
}

const unused = (): never => {
  throw new Error("the benchmark does not use this");
};

export class BenchSource implements StorageInterface {
  readonly versioner: StorageInterface["versioner"] = {
    withResourceVersion: unused,
    resourceVersionOf: unused,
    parse: (text) => Number(text),
  };
  readonly #count: number;
  revision = 1;
  storedBytes = 0;
  #listener: WatchListener | undefined;
  #resume: (() => void) | undefined;

  constructor(objects: number) {
    this.#count = objects;
    this.revision = objects;
  }

  /** Objects in the order of keys, in pages. */
  async getList(_key: string, { predicate }: ListOptions): Promise<ListResult> {
    const start = Number(predicate.continueToken);
    const end = Math.min(start + predicate.limit, this.#count);
    const perNamespace = this.#count / NAMESPACES;
    const items: StoredObject[] = [];
    for (let at = start; at < end; at++) {
      const i = (at % perNamespace) * NAMESPACES + Math.floor(at / perNamespace);
      const stored = new BenchObject(i, i + 1);
      this.storedBytes += stored.sizeBytes;
      items.push(stored);
    }
    return {
      items,
      resourceVersion: this.revision,
      continueToken: end < this.#count ? String(end) : "",
      remainingItemCount: undefined,
    };
  }

  async watch(): Promise<Watch> {
    return {
      start: (listener) => {
        this.#listener = listener;
      },
      resume: () => {
        this.#resume?.();
      },
      stop: () => {},
    };
  }

  /** Changes objects; resolves when the cache has taken all. */
  async change(events: number): Promise<void> {
    for (let n = 0; n < events; n++) {
      this.revision++;
      const object = new BenchObject((this.revision * 7919) % this.#count, this.revision);
      if (this.#listener!.event({ type: "MODIFIED", object })) continue;
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
      this.#resume = undefined;
    }
  }

  async currentResourceVersion(): Promise<number> {
    return this.revision;
  }

  async requestWatchProgress(): Promise<void> {}

  readiness(): string | undefined {
    return undefined;
  }

  async close(): Promise<void> {}

  create = unused;
  delete = unused;
  get = unused;
  guaranteedUpdate = unused;
  stats = unused;
}
