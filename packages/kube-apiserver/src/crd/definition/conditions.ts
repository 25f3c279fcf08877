/** Conditions of definitions (apiextensions-apiserver: pkg/apihelpers). */
import type { Crd, CrdCondition, CrdStatus } from "./types.ts";

/** A condition without its time. */
export type NewCondition = Omit<CrdCondition, "lastTransitionTime">;

/**
 * Sets a condition; its time changes with its status only.
 * @param now as metaTime writes it
 */
export function withCondition(crd: Crd, condition: NewCondition, now: string): Crd {
  const present = crd.status?.conditions ?? [];
  const before = present.find(({ type }) => type === condition.type);
  if (before !== undefined && isSameCondition(before, condition)) return crd;
  const stays = before?.status === condition.status && (before.lastTransitionTime ?? null) !== null;
  const next = { ...condition, lastTransitionTime: stays ? before?.lastTransitionTime : now };
  const conditions =
    before === undefined
      ? [...present, next]
      : present.map((one) => (one.type === condition.type ? next : one));
  return withStatus(crd, { conditions });
}

/** Removes a condition. */
export function withoutCondition(crd: Crd, type: string): Crd {
  const present = crd.status?.conditions ?? [];
  if (!present.some((one) => one.type === type)) return crd;
  return withStatus(crd, { conditions: present.filter((one) => one.type !== type) });
}

export function withStatus(crd: Crd, status: Partial<CrdStatus>): Crd {
  return { ...crd, status: { ...crd.status, ...status } };
}

/** Whether two conditions differ in their times at most. */
export function isSameCondition(a: NewCondition, b: NewCondition): boolean {
  return (
    a.type === b.type && a.status === b.status && a.reason === b.reason && a.message === b.message
  );
}
