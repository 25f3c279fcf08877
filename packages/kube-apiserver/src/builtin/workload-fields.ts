/** Parts of workloads that their tables show. */
import type { KubeObject } from "@quorate/kube-storage";

export interface Container {
  readonly name?: string;
  readonly image?: string;
  readonly restartPolicy?: string;
}

export interface Condition {
  readonly type?: string;
  readonly status?: string;
  readonly reason?: string;
}

type Values = Readonly<Record<string, unknown>>;

/** A field of spec or status, with what stands for an absent one. */
export function fieldOf<T>(object: KubeObject, part: string, field: string, absent: T): T {
  const values = object[part] as Values | undefined;
  return (values?.[field] as T | undefined) ?? absent;
}

/** A count in the status. */
export function statusCount(object: KubeObject, field: string): number {
  return fieldOf(object, "status", field, 0);
}

/** spec.template.spec.containers, below `part`. */
export function templateContainers(spec: unknown): readonly Container[] {
  const template = (spec as { template?: { spec?: { containers?: Container[] } } } | undefined)
    ?.template;
  return template?.spec?.containers ?? [];
}

/** Whether the status has the condition, and it is true. */
export function hasCondition(object: KubeObject, type: string): boolean {
  const conditions = fieldOf<readonly Condition[]>(object, "status", "conditions", []);
  return conditions.some((one) => one.type === type && one.status === "True");
}

/** Labels as "a=b,c=d"; "<none>" without any. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? "<none>" : pairs.sort().join(",");
}
