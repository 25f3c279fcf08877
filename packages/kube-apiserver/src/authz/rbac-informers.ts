/** Feeds the RBAC index with the roles and bindings of the cluster. */

import type { KubeObject, Lister, Watcher } from "@quorate/kube-storage";
import { Informer, type InformerDependencies } from "../informers/informer.ts";
import { systemContext } from "../informers/system-context.ts";
import type { RbacIndex } from "./rbac-index.ts";

export const RBAC_RESOURCES = [
  "roles",
  "clusterroles",
  "rolebindings",
  "clusterrolebindings",
] as const;
type RbacResource = (typeof RBAC_RESOURCES)[number];

export class RbacInformers {
  readonly #informers: readonly Informer[];

  constructor(
    index: RbacIndex,
    sourceOf: (resource: RbacResource) => Lister & Watcher,
    dependencies: InformerDependencies,
  ) {
    const roles = {
      added: (role: KubeObject) => index.setRole(role),
      updated: (role: KubeObject) => index.setRole(role),
      deleted: (role: KubeObject) => index.deleteRole(role),
    };
    const bindings = {
      added: (binding: KubeObject) => index.addBinding(binding),
      updated(binding: KubeObject, old: KubeObject) {
        index.deleteBinding(old);
        index.addBinding(binding);
      },
      deleted: (binding: KubeObject) => index.deleteBinding(binding),
    };
    this.#informers = RBAC_RESOURCES.map((resource) => {
      const handler = resource.endsWith("bindings") ? bindings : roles;
      const context = (signal: Parameters<typeof systemContext>[1]) => systemContext("", signal);
      return new Informer({ storage: sourceOf(resource) }, context, handler, dependencies);
    });
  }

  /** Resolves when all roles and bindings are known. */
  async start(): Promise<void> {
    for (const informer of this.#informers) informer.start();
    await Promise.all(this.#informers.map(({ synced }) => synced));
  }

  get hasSynced(): boolean {
    return this.#informers.every(({ hasSynced }) => hasSynced);
  }

  stop(): void {
    for (const informer of this.#informers) informer.stop();
  }
}
