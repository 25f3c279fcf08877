/**
 * The strategy of kinds without rules of their own: metadata, and the division into spec and
 * status. Other strategies are this one with some members replaced.
 */

import { semanticEqual } from "../meta/equality.ts";
import type { GroupVersionKind } from "../meta/kinds.ts";
import { type KubeObject, withField, withMetadata } from "../meta/object.ts";
import type { Strategy } from "./strategy.ts";

const NO_ERRORS = () => [];

export interface PlainOptions {
  readonly kind: GroupVersionKind;
  readonly namespaced: boolean;
  /** The resource has /status: only that endpoint changes the status. */
  readonly hasStatus?: boolean;
  /** metadata.generation counts the changes of all fields but metadata and status. */
  readonly countsGenerations?: boolean;
}

/** A strategy that keeps objects as they are. */
export function plainStrategy(options: PlainOptions, overrides: Partial<Strategy> = {}): Strategy {
  const { kind, namespaced, hasStatus = false, countsGenerations = false } = options;
  return {
    kind,
    namespaced,
    prepareForCreate(_ctx, object) {
      const prepared = hasStatus ? withField(object, "status", undefined) : object;
      return countsGenerations ? withMetadata(prepared, { generation: 1 }) : prepared;
    },
    validate: NO_ERRORS,
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: true,
    prepareForUpdate(_ctx, object, old) {
      const prepared = hasStatus ? withField(object, "status", old["status"]) : object;
      return countsGenerations ? withGeneration(prepared, old) : prepared;
    },
    validateUpdate: NO_ERRORS,
    ...(hasStatus ? { resetFields: { "f:status": {} } } : {}),
    ...overrides,
  };
}

/** The object with the next generation where more than metadata and status changed. */
export function withGeneration(object: KubeObject, old: KubeObject): KubeObject {
  const { metadata: _, status: __, ...present } = object;
  const { metadata: ___, status: ____, ...before } = old;
  if (semanticEqual(present, before)) return object;
  return withMetadata(object, { generation: (old.metadata.generation ?? 0) + 1 });
}

/** The strategy of /status: all but the status and metadata stays as it is. */
export function statusStrategyOf(strategy: Strategy, overrides: Partial<Strategy> = {}): Strategy {
  const { warningsOnUpdate: _, ...kept } = strategy;
  return {
    ...kept,
    allowCreateOnUpdate: false,
    prepareForUpdate(_ctx, object, old) {
      return { ...old, metadata: object.metadata, status: object["status"] };
    },
    validateUpdate: NO_ERRORS,
    resetFields: { "f:spec": {} },
    ...overrides,
  };
}
