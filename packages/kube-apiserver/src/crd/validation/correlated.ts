/**
 * A value with the one that it replaces, so that an update is not refused for what it leaves as it
 * was (apiserver: pkg/cel/common/equality.go).
 */

import type { Schema } from "@quorate/kube-storage";
import { isObject, type Json, sameJson } from "@quorate/kube-storage";
import { fieldOf } from "../schema/edit.ts";
import { valueSchema } from "../schema/traits.ts";

export class Correlated {
  readonly value: Json;
  readonly old: Json;
  readonly #schema: Schema;
  #equal: boolean | undefined;
  #oldItems: Map<string, Json> | undefined;

  constructor(value: Json, old: Json, schema: Schema) {
    this.value = value;
    this.old = old;
    this.#schema = schema;
  }

  /** Whether the value is the old one. */
  get equal(): boolean {
    this.#equal ??= sameJson(this.value, this.old);
    return this.#equal;
  }

  /** A field that both have; undefined where its old value is not known. */
  key(name: string): Correlated | undefined {
    if (!isObject(this.value) || !isObject(this.old)) return undefined;
    const value = fieldOf(this.value, name);
    const old = fieldOf(this.old, name);
    const schema = fieldOf(this.#schema.properties, name) ?? valueSchema(this.#schema);
    if (value === undefined || old === undefined || schema === undefined) return undefined;
    return new Correlated(value, old, schema);
  }

  /** An item of a list of type "map", whose keys find the old one. */
  index(i: number): Correlated | undefined {
    const { items } = this.#schema;
    if (!Array.isArray(this.value) || !Array.isArray(this.old) || items === undefined) {
      return undefined;
    }
    if (this.#schema["x-kubernetes-list-type"] !== "map") return undefined;
    this.#oldItems ??= this.#index(this.old);
    const key = this.#keyOf(this.value[i]);
    const old = key === undefined ? undefined : this.#oldItems.get(key);
    return old === undefined ? undefined : new Correlated(this.value[i], old, items);
  }

  #index(items: readonly Json[]): Map<string, Json> {
    const found = new Map<string, Json>();
    for (const item of items) {
      const key = this.#keyOf(item);
      if (key !== undefined && !found.has(key)) found.set(key, item);
    }
    return found;
  }

  #keyOf(item: Json): string | undefined {
    if (!isObject(item)) return undefined;
    const keys = this.#schema["x-kubernetes-list-map-keys"] ?? [];
    return JSON.stringify(keys.map((key) => fieldOf(item, key) ?? null));
  }
}
