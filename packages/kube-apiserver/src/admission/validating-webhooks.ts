/** The plug-in ValidatingAdmissionWebhook: all webhooks that match are called at the same time. */
import type { AdmissionPlugin } from "./chain.ts";
import type { Invocation, WebhookList } from "./webhook-config.ts";
import { type DispatchDependencies, dispatch } from "./webhook-dispatch.ts";
import { invocationOf, isExempt, type MatchDependencies } from "./webhook-match.ts";

/** Annotation of the audit log: a webhook that failed was ignored. */
const FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/";

export function validatingWebhooks(
  webhooks: WebhookList,
  deps: DispatchDependencies & MatchDependencies,
): AdmissionPlugin {
  return {
    async validate(attributes) {
      if (webhooks.all.length === 0 || isExempt(attributes)) return;
      const invocations: Invocation[] = [];
      for (const webhook of webhooks.all) {
        const invocation = await invocationOf(webhook, attributes, deps);
        if (invocation !== undefined) invocations.push(invocation);
      }
      const calls = invocations.map(async (one, at) => {
        if ((await dispatch(one, attributes, false, deps)) === undefined)
          attributes.annotate?.(`${FAILED_OPEN}round_0_index_${at}`, one.webhook.spec.name);
      });
      // All end before the first failure is reported, so that none outlives the request.
      const failures = await Promise.allSettled(calls);
      for (const failure of failures) if (failure.status === "rejected") throw failure.reason;
    },
  };
}
