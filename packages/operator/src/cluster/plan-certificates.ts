/**
 * Certificates: renewed when a third of their time is left, and at request. Members read their
 * files again by themselves. A new authority takes over in three stages, each as long as files take
 * to reach all members, so that at every moment all trust what any shows:
 *
 *     alone --> next: the bundle has both, the old one signs
 *           --> previous: the bundle has both, the new one signs
 *           --> alone
 *
 * With an issuer of cert-manager, that makes and renews them; here only Certificates are made.
 */
import { annotationOf } from "../base/kube.ts";
import { certificateOf, ROTATE, ROTATE_AUTHORITY } from "./objects.ts";
import { LEAVES, type Observed } from "./observed.ts";
import {
  type AuthorityStage,
  create,
  hasFields,
  patch,
  type Rules,
  type Step,
  wait,
} from "./step.ts";

const SOON_MS = 1000;

interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

const isEnding = ({ fromMs, untilMs }: Span, nowMs: number): boolean =>
  untilMs - nowMs < (untilMs - fromMs) / 3;

/** Makes or renews a certificate or the authority. */
export function certificateStep(observed: Observed, rules: Rules): Step | undefined {
  const { cluster, authority, leaves, nowMs } = observed;
  if (cluster.spec!.certificates.issuerRef !== undefined) return issuedStep(observed);
  const authorityStep = (stage: AuthorityStage, why: string): Step => ({
    do: "make-authority",
    stage,
    reason: "Certificates",
    why,
  });
  if (authority === undefined) return authorityStep("first", "the cluster has no authority");
  const request = annotationOf(cluster, ROTATE) ?? "";
  for (const leaf of LEAVES) {
    const found = leaves[leaf];
    if (found?.isCurrent && found.request === request && !isEnding(found, nowMs)) continue;
    const why = found === undefined ? "is not there" : "ends, or was to be renewed";
    return { do: "issue", leaf, reason: "Certificates", why: `the certificate ${leaf} ${why}` };
  }
  const { stage, stageSinceMs } = authority;
  if (stage !== "alone") {
    if (nowMs - stageSinceMs < rules.settleMs) return undefined;
    return stage === "next"
      ? authorityStep("takeover", "all members trust the next authority")
      : authorityStep("alone", "no member shows a certificate of the previous authority");
  }
  const isWanted = (annotationOf(cluster, ROTATE_AUTHORITY) ?? "") !== authority.request;
  if (!isWanted && !isEnding(authority, nowMs)) return undefined;
  return authorityStep("next", "the authority ends, or was to be replaced");
}

function issuedStep({ cluster, leaves, shared, served }: Observed): Step | undefined {
  const missing = LEAVES.filter((leaf) => leaves[leaf] === undefined);
  if (!served.has("Certificate")) {
    if (missing.length === 0) return undefined;
    const why = "an issuer is wanted, and the API server does not serve cert-manager's kinds";
    return wait(SOON_MS, "NoCertManager", why);
  }
  for (const leaf of LEAVES) {
    const wanted = certificateOf(cluster, leaf);
    const { kind, name } = { kind: "Certificate" as const, name: wanted.metadata.name };
    const found = shared.get(`${kind}/${name}`);
    if (found === undefined) return create(wanted, "Certificates", `${kind} ${name} was not there`);
    if (!hasFields(found.spec, wanted.spec)) {
      const fields = { spec: wanted.spec };
      return patch(kind, name, fields, "Certificates", "what certificates are to be has changed");
    }
  }
  if (missing.length === 0) return undefined;
  const why = `cert-manager has not made ${missing.join(", ")}, with ca.crt, yet`;
  return wait(SOON_MS, "Certificates", why);
}
