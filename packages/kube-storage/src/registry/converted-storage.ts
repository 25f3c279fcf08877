/**
 * A resource in another version than the one its store works with. Each stored object and each
 * watch event is converted once, however many requests read it.
 */
import type { KubeObject } from "../meta/object.ts";
import type { Status } from "../meta/status.ts";
import type { RestStorage, ValidateObject, ValidateUpdate } from "../rest/interfaces.ts";
import type { Watch, WatchEvent } from "../storage/interface.ts";
import { MadeObject, type StoredObject } from "../storage/stored-object.ts";

type Convert = (object: KubeObject) => KubeObject;

export class ConvertedStorage {
  readonly #inner: Required<RestStorage>;
  readonly #toStored: Convert;
  readonly #toServed: Convert;
  readonly #objects = new WeakMap<StoredObject, StoredObject>();
  readonly #events = new WeakMap<WatchEvent, WatchEvent>();

  /** @param inner a store with all verbs of a generic one */
  constructor(inner: RestStorage, toStored: Convert, toServed: Convert) {
    this.#inner = inner as Required<RestStorage>;
    this.#toStored = toStored;
    this.#toServed = toServed;
  }

  /** The storage in the served version. */
  verbs(): RestStorage {
    const inner = this.#inner;
    return {
      get: async (ctx, name, options) => this.#object(await inner.get(ctx, name, options)),
      list: async (ctx, options) => {
        const listed = await inner.list(ctx, options);
        return { ...listed, items: listed.items.map((item) => this.#object(item)) };
      },
      watch: async (ctx, options) => this.#watch(await inner.watch(ctx, options)),
      create: async (ctx, object, validate, options) =>
        this.#toServed(
          await inner.create(ctx, this.#toStored(object), this.#admits(validate), options),
        ),
      update: async (ctx, name, updated, validateCreate, validateUpdate, force, options) => {
        const result = await inner.update(
          ctx,
          name,
          {
            preconditions: updated.preconditions,
            make: async (request, old) => {
              const before = old === undefined ? undefined : this.#toServed(old);
              return this.#toStored(await updated.make(request, before));
            },
          },
          this.#admits(validateCreate),
          this.#admitsUpdate(validateUpdate),
          force,
          options,
        );
        return { ...result, object: this.#toServed(result.object) };
      },
      delete: async (ctx, name, validate, options) => {
        const deleted = await inner.delete(ctx, name, this.#admits(validate), options);
        return { ...deleted, result: this.#result(deleted.result) };
      },
      deleteCollection: async (ctx, validate, options, listOptions) => {
        const listed = await inner.deleteCollection(
          ctx,
          this.#admits(validate),
          options,
          listOptions,
        );
        return { ...listed, items: listed.items.map((item) => this.#object(item)) };
      },
    };
  }

  #admits(validate: ValidateObject): ValidateObject {
    return (object) => validate(this.#toServed(object));
  }

  #admitsUpdate(validate: ValidateUpdate): ValidateUpdate {
    return (object, old) => validate(this.#toServed(object), this.#toServed(old));
  }

  #result(result: KubeObject | Status): KubeObject | Status {
    return result.kind === "Status" ? result : this.#toServed(result as KubeObject);
  }

  #object(stored: StoredObject): StoredObject {
    const present = this.#objects.get(stored);
    if (present !== undefined) return present;
    const { key, resourceVersion } = stored;
    const made = new MadeObject(key, resourceVersion, this.#toServed(stored.object()));
    this.#objects.set(stored, made);
    return made;
  }

  #event(event: WatchEvent): WatchEvent {
    const present = this.#events.get(event);
    if (present !== undefined) return present;
    const made = { type: event.type, object: this.#object(event.object) };
    this.#events.set(event, made);
    return made;
  }

  #watch(watch: Watch): Watch {
    return {
      start: (listener) =>
        watch.start({
          event: (event) => listener.event(this.#event(event)),
          ended: (error) => listener.ended(error),
        }),
      resume: () => watch.resume(),
      stop: () => watch.stop(),
    };
  }
}
