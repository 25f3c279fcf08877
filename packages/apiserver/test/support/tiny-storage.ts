/** A storage in memory, for tests of what is above it. Watches are not kept in order of time. */
import { fromUtf8 } from "@quorate/proto";
import type { KubeObject } from "../../src/meta/object.ts";
import { MadeObject } from "../../src/registry/made-object.ts";
import { StorageError } from "../../src/storage/errors.ts";
import type {
  AttributesOf,
  ListOptions,
  ListResult,
  StorageInterface,
  UpdateFunction,
  UpdateOptions,
  Watch,
} from "../../src/storage/interface.ts";
import { failedPrecondition } from "../../src/storage/preconditions.ts";
import type { StoredObject } from "../../src/storage/stored-object.ts";
import { objectVersioner } from "../../src/storage/versioner.ts";

interface Entry {
  readonly stored: StoredObject;
  readonly ttlSeconds: number | undefined;
}

export class TinyStorage implements StorageInterface {
  readonly versioner = objectVersioner;
  readonly entries = new Map<string, Entry>();
  readonly calls: string[] = [];
  /** Runs before each write of an update, for conflicts. */
  beforeWrite: (() => Promise<void>) | undefined;
  readonly #attributesOf: AttributesOf;
  #revision = 100;

  constructor(attributesOf: AttributesOf) {
    this.#attributesOf = attributesOf;
  }

  #write(key: string, object: KubeObject, ttlSeconds: number | undefined): StoredObject {
    const revision = ++this.#revision;
    const stamped = this.versioner.withResourceVersion(object, revision);
    const stored = new MadeObject(key, revision, JSON.parse(JSON.stringify(stamped)));
    this.entries.set(key, { stored, ttlSeconds });
    return stored;
  }

  async create(key: string, object: KubeObject, ttlSeconds: number): Promise<StoredObject> {
    this.calls.push(`create ${key}`);
    if (this.entries.has(key)) throw new StorageError("KeyExists", key, "key exists");
    return this.#write(key, object, ttlSeconds === 0 ? undefined : ttlSeconds);
  }

  async delete(
    key: string,
    options: Parameters<StorageInterface["delete"]>[1] = {},
  ): Promise<StoredObject> {
    const { stored } = this.#existing(key);
    const failed = failedPrecondition(options.preconditions, key, stored.object());
    if (failed !== undefined) throw failed;
    await options.validate?.(stored.object());
    this.calls.push(`delete ${key}`);
    this.entries.delete(key);
    const revision = ++this.#revision;
    const last = this.versioner.withResourceVersion(stored.object(), revision);
    return new MadeObject(key, revision, last);
  }

  #existing(key: string): Entry {
    const entry = this.entries.get(key);
    if (entry === undefined) throw new StorageError("KeyNotFound", key, "key not found");
    return entry;
  }

  async get(
    key: string,
    options: { ignoreNotFound?: boolean } = {},
  ): Promise<StoredObject | undefined> {
    if (options.ignoreNotFound === true) return this.entries.get(key)?.stored;
    return this.#existing(key).stored;
  }

  async getList(key: string, options: ListOptions): Promise<ListResult> {
    this.calls.push(`list ${key} ${options.recursive}`);
    const { label, field, limit, continueToken } = options.predicate;
    const found = [...this.entries.keys()]
      .filter((other) => (options.recursive ? other.startsWith(key) : other === key))
      .sort()
      .filter((other) => other > continueToken)
      .map((other) => this.entries.get(other)!.stored)
      .filter((stored) => {
        const { labels, fields } = this.#attributesOf(stored.object());
        return label.matches(labels) && field.matches(fields);
      });
    const items = limit > 0 ? found.slice(0, limit) : found;
    const more = found.length - items.length;
    return {
      items,
      resourceVersion: this.#revision,
      continueToken: more > 0 ? items.at(-1)!.key : "",
      remainingItemCount: more > 0 ? more : undefined,
    };
  }

  async watch(key: string, options: ListOptions): Promise<Watch> {
    this.calls.push(`watch ${key} ${options.recursive}`);
    return { start: () => undefined, resume: () => undefined, stop: () => undefined };
  }

  async guaranteedUpdate(
    key: string,
    update: UpdateFunction,
    options: UpdateOptions,
  ): Promise<StoredObject> {
    for (let attempt = 0; attempt < 10; attempt++) {
      const entry = options.ignoreNotFound ? this.entries.get(key) : this.#existing(key);
      const present = entry?.stored.object();
      const failed = failedPrecondition(options.preconditions, key, present);
      if (failed !== undefined) throw failed;
      const updated = await update(present, entry?.ttlSeconds);
      await this.beforeWrite?.();
      if (this.entries.get(key) !== entry) continue;
      const unchanged = JSON.stringify(present) === JSON.stringify(updated.object);
      if (unchanged && entry !== undefined) return entry.stored;
      this.calls.push(`update ${key}`);
      return this.#write(key, updated.object, updated.ttlSeconds ?? entry?.ttlSeconds);
    }
    throw new Error("too many conflicts");
  }

  async stats(): Promise<{ objectCount: number; averageObjectSizeBytes: number }> {
    const sizes = [...this.entries.values()].map(({ stored }) => stored.json().length);
    const sum = sizes.reduce((total, size) => total + size, 0);
    return { objectCount: sizes.length, averageObjectSizeBytes: sum / (sizes.length || 1) };
  }

  async requestWatchProgress(): Promise<void> {}

  async currentResourceVersion(): Promise<number> {
    return this.#revision;
  }

  readiness(): string | undefined {
    return undefined;
  }

  async close(): Promise<void> {}
}

/** The codec of JSON texts. */
export const JSON_CODEC = {
  encode: (object: KubeObject): Uint8Array => fromUtf8(JSON.stringify(object)),
  decode: (bytes: Uint8Array): KubeObject =>
    JSON.parse(new TextDecoder().decode(bytes)) as KubeObject,
};
