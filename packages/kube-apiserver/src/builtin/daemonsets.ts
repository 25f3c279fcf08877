/** DaemonSets count the changes of their template in an annotation (registry/apps/daemonset). */

import type { KubeObject, Strategy } from "@quorate/kube-storage";
import { semanticEqual, withMetadata } from "@quorate/kube-storage";
import { fieldOf } from "./workload-fields.ts";

const ANNOTATION = "deprecated.daemonset.template.generation";

function withCount(object: KubeObject, count: number): KubeObject {
  const annotations = { ...object.metadata.annotations, [ANNOTATION]: String(count) };
  return withMetadata(object, { annotations });
}

/** The strategy, with the annotation kept by the server. */
export function templateGenerations(strategy: Strategy): Strategy {
  return {
    ...strategy,
    prepareForCreate: (ctx, object) => withCount(strategy.prepareForCreate(ctx, object), 1),
    prepareForUpdate(ctx, object, old) {
      const before = Number(old.metadata.annotations?.[ANNOTATION] ?? "0");
      const template = (of: KubeObject): unknown => fieldOf(of, "spec", "template", undefined);
      const same = semanticEqual(template(object), template(old));
      const prepared = strategy.prepareForUpdate(ctx, object, old);
      return withCount(prepared, same ? before : before + 1);
    },
  };
}
