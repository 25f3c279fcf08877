/** Brings a cluster one step nearer to what is wanted: look, plan, report, act. */
import type { Clock, Logger } from "@quorate/host";
import { recordEvent } from "../base/events.ts";
import type { QuorateCluster } from "../base/kinds.ts";
import {
  createOnce,
  type Key,
  type Kube,
  KubeError,
  type KubeObject,
  keyOf,
} from "../base/kube.ts";
import type { Target } from "../base/members.ts";
import type { OperatorMetrics } from "../base/metrics.ts";
import { newLeaf, nextAuthority } from "./certificates.ts";
import { authorityName, leafName } from "./objects.ts";
import { type ObserveDeps, observe } from "./observe.ts";
import type { Observed } from "./observed.ts";
import { plan } from "./plan.ts";
import { statusOf } from "./status.ts";
import type { Rules, Step } from "./step.ts";

export interface ClusterDeps extends ObserveDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: OperatorMetrics;
}

/** After a step the next look follows at once; after a refused one, so much later. */
const REFUSED_MS = 1000;

type Seen = Observed & { readonly target: Target | undefined };

export class ClusterReconciler {
  readonly #deps: ClusterDeps;
  readonly #rules: Rules;

  constructor(rules: Rules, deps: ClusterDeps) {
    this.#deps = deps;
    this.#rules = rules;
  }

  /**
   * Takes one step. Returns after how many milliseconds to look again, undefined where there is no
   * such cluster. Rejects with KubeError, and with what certificates reject with.
   */
  async reconcile({ namespace, name }: Key): Promise<number | undefined> {
    const { kube, clock, metrics } = this.#deps;
    const cluster = await kube.get<QuorateCluster>("QuorateCluster", namespace, name);
    if (cluster === undefined) {
      metrics.forgetCluster(namespace, name);
      return undefined;
    }
    const observed = await observe(cluster, clock.wallMs(), this.#deps);
    const step = plan(observed, this.#rules);
    await this.#report(observed, step);
    if (step.do === "wait") return step.afterMs;
    try {
      const isDone = await this.#perform(step, observed);
      if (!isDone) return REFUSED_MS;
    } catch (error) {
      // The members refuse changes while they are not well; the next look says whether it was done.
      if (error instanceof KubeError) throw error;
      this.#note(cluster, "a step was refused", step, error);
      return REFUSED_MS;
    }
    metrics.steps.with(step.do).add();
    this.#note(cluster, "step", step, undefined);
    if (step.do !== "patch" || step.reason !== "Noted")
      await recordEvent(kube, clock, cluster, "Normal", step.reason, step.why);
    return 0;
  }

  #note(cluster: KubeObject, text: string, step: Step, error: unknown): void {
    const { namespace, name } = keyOf(cluster);
    const fields = {
      cluster: `${namespace}/${name}`,
      step: step.do,
      reason: step.reason,
      why: step.why,
    };
    if (error === undefined) this.#deps.logger.info(text, fields);
    else this.#deps.logger.warn(text, { ...fields, error: String(error) });
  }

  async #report(observed: Observed, step: Step): Promise<void> {
    const { kube, clock, metrics } = this.#deps;
    const { cluster } = observed;
    const { namespace, name } = keyOf(cluster);
    const status = statusOf(observed, step);
    metrics.seeCluster(cluster, status);
    if (JSON.stringify(status) === JSON.stringify(cluster.status)) return;
    const { resourceVersion } = cluster.metadata;
    const fields = { metadata: { resourceVersion }, status };
    await kube.patch("QuorateCluster", namespace, name, fields, "status");
    const isNew = (type: string): boolean => {
      const of = (from: typeof status | undefined) =>
        from?.conditions?.find((one) => one.type === type);
      return of(status)?.status === "True" && of(cluster.status)?.status !== "True";
    };
    if (isNew("Degraded"))
      await recordEvent(kube, clock, cluster, "Warning", step.reason, step.why);
    if (isNew("Ready")) await recordEvent(kube, clock, cluster, "Normal", "Ready", step.why);
  }

  /** Resolves to false where the step is not possible yet. */
  async #perform(step: Exclude<Step, { do: "wait" }>, observed: Seen): Promise<boolean> {
    const { kube, members, certifier } = this.#deps;
    const { cluster, target, nowMs } = observed;
    const { namespace, name } = keyOf(cluster);
    switch (step.do) {
      case "create":
        await createOnce(kube, step.object);
        return true;
      case "patch":
        await kube.patch(step.kind, namespace, step.name, step.patch, step.subresource);
        return true;
      case "remove":
        await kube.remove(step.kind, namespace, step.name, step.uid);
        return true;
      case "make-authority": {
        const present = await kube.get("Secret", namespace, authorityName(name));
        const secret = await nextAuthority(cluster, present, step.stage, nowMs, certifier);
        await putSecret(kube, present, secret);
        return true;
      }
      case "issue": {
        const authority = await kube.get("Secret", namespace, authorityName(name));
        if (authority === undefined) return false;
        const present = await kube.get("Secret", namespace, leafName(name, step.leaf));
        const secret = await newLeaf(cluster, step.leaf, authority, nowMs, certifier);
        await putSecret(kube, present, secret);
        return true;
      }
      case "add-learner":
        await members.addLearner(target!, step.peerUrl);
        return true;
      case "promote":
        return members.promote(target!, step.id);
      case "remove-member":
        await members.remove(target!, step.id);
        return true;
      case "move-leader":
        await members.moveLeader(target!, step.from, step.to);
        return true;
      case "ask-for-users":
        await members.askForUsers(target!, step.isWanted);
        return true;
    }
  }
}

async function putSecret(
  kube: Kube,
  present: KubeObject | undefined,
  secret: KubeObject,
): Promise<void> {
  if (present === undefined) return createOnce(kube, secret);
  const { namespace, name } = keyOf(secret);
  // Values that are to go are null in a merge patch.
  const gone = Object.keys(present.data ?? {}).filter((key) => secret.data?.[key] === undefined);
  const { resourceVersion } = present.metadata;
  const patch = {
    metadata: { resourceVersion, annotations: secret.metadata.annotations },
    data: { ...secret.data, ...Object.fromEntries(gone.map((key) => [key, null])) },
  };
  await kube.patch("Secret", namespace, name, patch, "");
}
