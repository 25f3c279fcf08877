/**
 * The storage of one version of a custom resource, over the storage that all versions share.
 * Objects are converted at the edges; those that have the version already are passed on as they
 * are, so that their JSON stays shared.
 *
 *     registry Store (v2) -> ConvertingStorage (v2) -\
 *     registry Store (v1) -> ConvertingStorage (v1) --> Cacher -> EtcdStore (objects as stored)
 */

import type {
  CallOptions,
  DeleteOptions,
  GetOptions,
  KubeObject,
  ListOptions,
  ListResult,
  StorageInterface,
  StorageStats,
  StoredObject,
  UpdateFunction,
  UpdateOptions,
  Versioner,
  Watch,
} from "@quorate/kube-storage";
import { MadeObject } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import type { Converter } from "./converter.ts";
import { ConvertingWatch } from "./converting-watch.ts";

export interface ConvertingOptions {
  /** The version that this storage speaks, such as "example.org/v2". */
  readonly apiVersion: string;
  /** The version in which objects are stored. */
  readonly storedApiVersion: string;
  /** After a conversion: prunes what the version's schema does not know. Throws ApiError. */
  readonly read: (object: KubeObject) => KubeObject;
  /** The same for the stored version. */
  readonly readStored: (object: KubeObject) => KubeObject;
}

export interface ConvertingDeps {
  readonly storage: StorageInterface;
  readonly converter: Converter;
}

export class ConvertingStorage implements StorageInterface {
  readonly versioner: Versioner;
  readonly #options: ConvertingOptions;
  readonly #storage: StorageInterface;
  readonly #converter: Converter;
  /** Converted once for all readers of an object. */
  readonly #converted = new WeakMap<StoredObject, StoredObject>();

  constructor(options: ConvertingOptions, { storage, converter }: ConvertingDeps) {
    this.#options = options;
    this.#storage = storage;
    this.#converter = converter;
    this.versioner = storage.versioner;
  }

  async create(key: string, object: KubeObject, ttlSeconds: number, options?: CallOptions) {
    const stored = await this.#toStored(object);
    return await this.#one(await this.#storage.create(key, stored, ttlSeconds, options));
  }

  async delete(key: string, options: DeleteOptions = {}): Promise<StoredObject> {
    const { validate, cached: _, ...rest } = options;
    const check =
      validate === undefined
        ? undefined
        : async (object: KubeObject) => validate(await this.#fromStored(object));
    return await this.#one(await this.#storage.delete(key, { ...rest, validate: check }));
  }

  async get(key: string, options?: GetOptions): Promise<StoredObject | undefined> {
    const stored = await this.#storage.get(key, options);
    return stored === undefined ? undefined : await this.#one(stored);
  }

  async getList(key: string, options: ListOptions): Promise<ListResult> {
    const listed = await this.#storage.getList(key, options);
    const items = this.converted(listed.items);
    return { ...listed, items: items instanceof Promise ? await items : items };
  }

  async watch(key: string, options: ListOptions): Promise<Watch> {
    const watch = await this.#storage.watch(key, options);
    return new ConvertingWatch(watch, (items) => this.converted(items));
  }

  async guaranteedUpdate(
    key: string,
    update: UpdateFunction,
    options: UpdateOptions,
  ): Promise<StoredObject> {
    const { cached: _, ...rest } = options;
    const stored = await this.#storage.guaranteedUpdate(
      key,
      async (present, ttlSeconds) => {
        const mine = present === undefined ? undefined : await this.#fromStored(present);
        const updated = await update(mine, ttlSeconds);
        return { ...updated, object: await this.#toStored(updated.object) };
      },
      rest,
    );
    return await this.#one(stored);
  }

  async asRead(object: KubeObject): Promise<KubeObject> {
    return await this.#fromStored(await this.#toStored(object));
  }

  stats(options?: CallOptions): Promise<StorageStats> {
    return this.#storage.stats(options);
  }

  requestWatchProgress(): Promise<void> {
    return this.#storage.requestWatchProgress();
  }

  currentResourceVersion(options?: CallOptions): Promise<number> {
    return this.#storage.currentResourceVersion(options);
  }

  compactRevision(): number {
    return this.#storage.compactRevision?.() ?? 0;
  }

  readiness(): string | undefined {
    return this.#storage.readiness();
  }

  /** The shared storage stays open: its owner closes it. */
  async close(): Promise<void> {}

  /** Stored objects in this version; at once where no webhook is asked. */
  converted(
    items: readonly StoredObject[],
  ): readonly StoredObject[] | Promise<readonly StoredObject[]> {
    const { apiVersion } = this.#options;
    const wanted = items.filter((item) => {
      if (this.#isDone(item)) return false;
      const object = item.object();
      if (!isBookmark(object)) return true;
      this.#converted.set(item, made(item, { ...object, apiVersion }));
      return false;
    });
    if (wanted.length === 0) return items.map((item) => this.#converted.get(item) ?? item);
    const objects = this.#converter.convert(
      wanted.map((item) => item.object()),
      apiVersion,
    );
    const keep = (done: readonly KubeObject[]) => {
      for (const [i, item] of wanted.entries()) {
        const object = defined(done[i], "a converted object");
        this.#converted.set(item, made(item, this.#options.read(object)));
      }
      return items.map((item) => this.#converted.get(item) ?? item);
    };
    return objects instanceof Promise ? objects.then(keep) : keep(objects);
  }

  #isDone(item: StoredObject): boolean {
    return this.#converted.has(item) || item.object().apiVersion === this.#options.apiVersion;
  }

  async #one(stored: StoredObject): Promise<StoredObject> {
    await this.converted([stored]);
    return this.#converted.get(stored) ?? stored;
  }

  async #fromStored(object: KubeObject): Promise<KubeObject> {
    const { apiVersion, read } = this.#options;
    if (object.apiVersion === apiVersion) return object;
    return read(await this.#convertedTo(apiVersion, object));
  }

  async #toStored(object: KubeObject): Promise<KubeObject> {
    const { storedApiVersion, readStored } = this.#options;
    if (object.apiVersion === storedApiVersion) return object;
    return readStored(await this.#convertedTo(storedApiVersion, object));
  }

  async #convertedTo(apiVersion: string, object: KubeObject): Promise<KubeObject> {
    const [converted] = await this.#converter.convert([object], apiVersion);
    return defined(converted, "the converted object");
  }
}

function made({ key, resourceVersion }: StoredObject, object: KubeObject): StoredObject {
  return new MadeObject(key, resourceVersion, object);
}

/** Bookmarks have nothing but a revision and annotations: no webhook is asked about them. */
function isBookmark(object: KubeObject): boolean {
  return object.metadata.uid === undefined && object.metadata.name === undefined;
}
