/** DaemonSets count the changes of their template in an annotation (registry/apps/daemonset). */
import { withMetadata } from "../../meta/change.ts";
import { semanticEqual } from "../../meta/equality.ts";
import type { KubeObject } from "../../meta/object.ts";
import type { Strategy } from "../strategy.ts";
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
