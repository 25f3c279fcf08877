/** The field managers of served resources, made at their first write. */

import type { Clock } from "@quorate/host";
import type { KubeObject, ServedResource, ServedResources } from "@quorate/kube-storage";
import { apiVersionOf, parseApiVersion } from "@quorate/kube-storage";
import { emptyObjectOf } from "../apply/empty-object.ts";
import { createFieldManager } from "../apply/field-manager.ts";
import type { FieldManager } from "../apply/patch-types.ts";

export class FieldManagers {
  readonly #resources: ServedResources;
  readonly #clock: Pick<Clock, "turns">;
  readonly #made = new WeakMap<ServedResource, FieldManager>();

  /** @param clock for pauses in long writes */
  constructor(resources: ServedResources, clock: Pick<Clock, "turns">) {
    this.#resources = resources;
    this.#clock = clock;
  }

  of(resource: ServedResource): FieldManager {
    const known = this.#made.get(resource);
    if (known !== undefined) return known;
    const { kind, schema, resetFields } = resource;
    const manager = createFieldManager({
      kind,
      schema,
      resetFields,
      clock: this.#clock,
      empty: emptyObject(resource),
      setDefaults: (object) => resource.decode(object).object,
      versions: {
        schemaOf: (version) => this.#inVersion(resource, version)?.schema,
        convert: async (object: KubeObject, version: string) => {
          const other = this.#inVersion(resource, version);
          return other === undefined ? object : (await other.convert([object]))[0];
        },
      },
    });
    this.#made.set(resource, manager);
    return manager;
  }

  /** The same resource in another version, where that is served. */
  #inVersion({ resource, subresource }: ServedResource, apiVersion: string) {
    const parsed = parseApiVersion(apiVersion);
    return parsed && this.#resources.find(parsed.group, parsed.version, resource, subresource);
  }
}

/** What a create of a built-in kind is compared with; undefined for other kinds. */
function emptyObject(resource: ServedResource): KubeObject | undefined {
  const { kind, schema } = resource;
  if (!resource.strategicMerge || schema === undefined) return undefined;
  const { object } = resource.decode({ apiVersion: apiVersionOf(kind), kind: kind.kind });
  return emptyObjectOf(kind, schema, object);
}
