/**
 * The plug-in ResourceQuota (apiserver: pkg/admission/plugin/resourcequota): a write that would use
 * more than a quota of its namespace has is refused, and what it uses is added to the quota's
 * status before it is written. The status is written by compare-and-swap, so that several servers
 * agree; requests that wait for the same namespace are judged together, with one write.
 *
 *     request -> waits in its namespace -> judged with those beside it -> status written -> goes on
 *                                            ^------- conflict, up to 3 times ---'
 */
import {
  type Amounts,
  added,
  compareQuantities,
  excess,
  internalError,
  type KubeObject,
  masked,
  sameAmounts,
  shownAmounts,
  withoutZeros,
} from "@quorate/kube-storage";
import type { AdmissionAttributes } from "../admission/admission.ts";
import { type AdmissionPlugin, admissionForbidden } from "../admission/chain.ts";
import { isConflict } from "../informers/local-client.ts";
import { type Evaluator, evaluatorOf } from "./evaluators.ts";
import { hardOf, isInScopes, usedOf, withStatus } from "./quotas.ts";

export const MAX_QUOTA_RETRIES = 3;
/** Events and what is never stored count for no quota. */
const IGNORED = new Set(["/events", "events.k8s.io/events", "/bindings"]);

export interface QuotaDeps {
  /** How many quotas each namespace has that has any; may lag behind. */
  readonly counts: ReadonlyMap<string, number>;
  /** Those that are stored now. Rejects with ApiError. */
  quotasOf(namespace: string): Promise<readonly KubeObject[]>;
  /** Writes the status, unless another one has written the quota. Rejects with ApiError. */
  writeStatus(quota: KubeObject): Promise<void>;
  nowMs(): number;
}

/** A request that waits for its decision. */
interface Waiter {
  readonly attributes: AdmissionAttributes;
  readonly evaluator: Evaluator;
  allow(): void;
  refuse(error: unknown): void;
}

export function resourceQuota(deps: QuotaDeps): AdmissionPlugin {
  const gate = new QuotaGate(deps);
  return {
    isIdle: () => deps.counts.size === 0,
    async validate(attributes) {
      const { namespace, resource, kind } = attributes;
      if (namespace === "" || (resource.group === "" && kind.kind === "Namespace")) return;
      if (attributes.operation !== "CREATE" && attributes.operation !== "UPDATE") return;
      if (IGNORED.has(`${resource.group}/${resource.resource}`)) return;
      const evaluator = evaluatorOf(resource.group, resource.resource);
      if (!evaluator.handles(attributes) || !deps.counts.has(namespace)) return;
      await gate.decide(attributes, evaluator);
    },
  };
}

class QuotaGate {
  readonly #deps: QuotaDeps;
  /** By namespace; present while its requests are judged. As many as there are requests. */
  readonly #waiting = new Map<string, Waiter[]>();

  constructor(deps: QuotaDeps) {
    this.#deps = deps;
  }

  decide(attributes: AdmissionAttributes, evaluator: Evaluator): Promise<void> {
    const { namespace } = attributes;
    return new Promise((allow, refuse) => {
      const waiter: Waiter = { attributes, evaluator, allow, refuse };
      const waiting = this.#waiting.get(namespace);
      if (waiting !== undefined) waiting.push(waiter);
      else {
        this.#waiting.set(namespace, [waiter]);
        void this.#work(namespace);
      }
    });
  }

  async #work(namespace: string): Promise<void> {
    for (;;) {
      const batch = this.#waiting.get(namespace) ?? [];
      if (batch.length === 0) break;
      this.#waiting.set(namespace, []);
      try {
        const quotas = await this.#deps.quotasOf(namespace);
        await this.#judge(namespace, quotas, batch, MAX_QUOTA_RETRIES);
      } catch (error) {
        for (const { refuse } of batch) refuse(error);
      }
    }
    this.#waiting.delete(namespace);
  }

  async #judge(
    namespace: string,
    quotas: readonly KubeObject[],
    batch: readonly Waiter[],
    retries: number,
  ): Promise<void> {
    const pending: Waiter[] = [];
    let running = quotas;
    for (const waiter of batch) {
      try {
        const next = charged(running, waiter, this.#deps.nowMs());
        if (waiter.attributes.dryRun || next === running) waiter.allow();
        else {
          pending.push(waiter);
          running = next;
        }
      } catch (error) {
        waiter.refuse(error);
      }
    }
    const failed = new Set<string | undefined>();
    let last: unknown;
    for (const [index, quota] of running.entries()) {
      if (quota === quotas[index]) continue;
      try {
        await this.#deps.writeStatus(quota);
      } catch (error) {
        failed.add(quota.metadata.name);
        last = error;
      }
    }
    if (failed.size === 0) for (const { allow } of pending) allow();
    else if (retries === 0 || !isConflict(last)) for (const { refuse } of pending) refuse(last);
    else {
      const present = await this.#deps.quotasOf(namespace);
      const again = present.filter(({ metadata }) => failed.has(metadata.name));
      await this.#judge(namespace, again, pending, retries - 1);
    }
  }
}

/** A quota that the request is judged by, with what the request adds. */
interface Charge {
  readonly index: number;
  readonly delta: Amounts;
}

/**
 * The quotas as they are with the request; the same list where it changes none. Throws ApiError 403
 * where one of them has too little left.
 */
function charged(
  quotas: readonly KubeObject[],
  { attributes, evaluator }: Waiter,
  nowMs: number,
): readonly KubeObject[] {
  const { object, oldObject, operation } = attributes;
  if (object === undefined) throw internalError("a write without an object");
  const refuse = (why: string): never => {
    throw admissionForbidden(attributes, why);
  };
  const concerned = quotas.flatMap((quota, index) => {
    const names = Object.keys(hardOf(quota)).filter((name) => evaluator.counts(name));
    if (names.length === 0 || !isInScopes(quota, object, evaluator)) return [];
    const name = quota.metadata.name ?? "";
    const missing = evaluator.missing(names, object);
    if (missing !== undefined) refuse(`failed quota: ${name}: ${missing}`);
    const used = usedOf(quota);
    if (names.some((one) => !(one in used)))
      refuse(`status unknown for quota: ${name}, resources: ${names.sort().join(",")}`);
    return [index];
  });
  const usage = evaluator.usage(object, nowMs);
  const negative = Object.keys(usage).filter((one) => compareQuantities(usage[one] ?? "", "0") < 0);
  if (negative.length > 0)
    refuse(`quota usage is negative for resource(s): ${negative.sort().join(",")}`);
  const before =
    operation === "UPDATE" && oldObject !== undefined ? evaluator.usage(oldObject, nowMs) : {};
  const charges = concerned.map((index): Charge => {
    const quota = quotas[index] as KubeObject;
    const wasIn = oldObject !== undefined && isInScopes(quota, oldObject, evaluator);
    return { index, delta: withoutZeros(wasIn ? excess(usage, before) : usage) };
  });
  const result = [...quotas];
  let isChanged = false;
  for (const { index, delta } of charges) {
    const quota = quotas[index] as KubeObject;
    const [hard, used] = [hardOf(quota), usedOf(quota)];
    const requested = masked(delta, Object.keys(hard));
    const next = added(used, requested);
    if (attributes.subresource !== "status") check(quota, requested, next, refuse);
    if (sameAmounts(used, next)) continue;
    isChanged = true;
    result[index] = withStatus(quota, { used: next });
  }
  return isChanged ? result : quotas;
}

function check(
  quota: KubeObject,
  requested: Amounts,
  next: Amounts,
  refuse: (why: string) => void,
): void {
  const [hard, used] = [hardOf(quota), usedOf(quota)];
  const exceeded = Object.keys(requested).filter((name) => {
    const [wanted, limit] = [next[name], hard[name]];
    return wanted !== undefined && limit !== undefined && compareQuantities(wanted, limit) > 0;
  });
  if (exceeded.length === 0) return;
  const shown = (amounts: Amounts): string => shownAmounts(masked(amounts, exceeded));
  refuse(
    `exceeded quota: ${quota.metadata.name}, requested: ${shown(requested)}, ` +
      `used: ${shown(used)}, limited: ${shown(hard)}`,
  );
}
