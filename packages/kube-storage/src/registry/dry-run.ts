/**
 * Writes that may be dry runs: those read and check as real ones, and write nothing (apiserver:
 * registry/generic/registry/dryrun.go).
 */
import { defined } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";
import type { RequestContext } from "../rest/context.ts";
import { StorageError } from "../storage/errors.ts";
import type {
  DeleteOptions,
  Preconditions,
  StorageInterface,
  UpdateFunction,
} from "../storage/interface.ts";
import { failedPrecondition } from "../storage/preconditions.ts";

/** Writes to a storage for one request. All reject with StorageError. */
export class RequestWriter {
  readonly #storage: StorageInterface;
  readonly #ctx: RequestContext;
  readonly dryRun: boolean;

  constructor(storage: StorageInterface, ctx: RequestContext, dryRun: boolean) {
    this.#storage = storage;
    this.#ctx = ctx;
    this.dryRun = dryRun;
  }

  async create(key: string, object: KubeObject, ttlSeconds: number): Promise<KubeObject> {
    const { signal } = this.#ctx;
    if (this.dryRun) {
      const present = await this.#storage.get(key, { ignoreNotFound: true, signal });
      if (present === undefined) return await this.#asRead(object);
      throw new StorageError("KeyExists", key, `key exists: ${key}`);
    }
    return (await this.#storage.create(key, object, ttlSeconds, { signal })).object();
  }

  async delete(key: string, options: DeleteOptions): Promise<KubeObject> {
    const { signal } = this.#ctx;
    if (!this.dryRun) return (await this.#storage.delete(key, { ...options, signal })).object();
    const present = defined(await this.#storage.get(key, { signal }), "the object").object();
    const failed = failedPrecondition(options.preconditions, key, present);
    if (failed !== undefined) throw failed;
    await options.validate?.(present);
    return present;
  }

  async update(
    key: string,
    update: UpdateFunction,
    ignoreNotFound: boolean,
    preconditions: Preconditions,
  ): Promise<KubeObject> {
    const { signal } = this.#ctx;
    if (!this.dryRun) {
      const options = { ignoreNotFound, preconditions, signal };
      return (await this.#storage.guaranteedUpdate(key, update, options)).object();
    }
    const present = (await this.#storage.get(key, { ignoreNotFound, signal }))?.object();
    const failed = failedPrecondition(preconditions, key, present);
    if (failed !== undefined) throw failed;
    return await this.#asRead((await update(present, undefined)).object);
  }

  async #asRead(object: KubeObject): Promise<KubeObject> {
    return (await this.#storage.asRead?.(object)) ?? object;
  }
}
