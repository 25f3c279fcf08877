/**
 * CertificateSigningRequest: who asks is written down, an approver changes the conditions, and a
 * signer the certificate (kubernetes: pkg/registry/certificates/certificates/strategy.go).
 */
import type { Clock } from "@quorate/host";
import {
  type KubeObject,
  metaTime,
  type ResourceParts,
  type ResourceSpec,
  type SpecStorages,
  type Strategy,
  statusStrategyOf,
  subresourceStoreOf,
} from "@quorate/kube-storage";
import { userInfoObject } from "../authn/reviews.ts";

type Fields = Readonly<Record<string, unknown>>;

interface Condition {
  readonly type?: string;
  readonly status?: string;
  readonly lastUpdateTime?: string | null;
  readonly lastTransitionTime?: string | null;
}

function conditionsOf(object: KubeObject): readonly Condition[] {
  return ((object["status"] ?? {}) as { conditions?: readonly Condition[] }).conditions ?? [];
}

function isDecision({ type }: Condition): boolean {
  return type === "Approved" || type === "Denied";
}

/** Conditions with the times that clients leave to the server. */
function timed(object: KubeObject, old: KubeObject, wallMs: number): readonly Condition[] {
  const now = metaTime(wallMs);
  return conditionsOf(object).map((one) => {
    const same = conditionsOf(old).find(
      ({ type, status }) => type === one.type && status === one.status,
    );
    return {
      ...one,
      lastUpdateTime: one.lastUpdateTime ?? now,
      lastTransitionTime: one.lastTransitionTime ?? same?.lastTransitionTime ?? now,
    };
  });
}

export function signingRequests(strategy: Strategy): Strategy {
  return {
    ...strategy,
    prepareForCreate(ctx, object) {
      const { signerName, request, expirationSeconds, usages } = (object["spec"] ?? {}) as Fields;
      const spec = { request, signerName, expirationSeconds, usages, ...userInfoObject(ctx.user) };
      const known = Object.entries(spec).filter(([, value]) => value !== undefined);
      return { ...object, spec: Object.fromEntries(known), status: {} };
    },
    prepareForUpdate: (_ctx, object, old) => ({
      ...object,
      spec: old["spec"],
      status: old["status"],
    }),
  };
}

/** The strategy of /status: decisions stay as they are. */
function signingStatus(strategy: Strategy, clock: Pick<Clock, "wallMs">): Strategy {
  const plain = statusStrategyOf(strategy);
  return {
    ...plain,
    prepareForUpdate(ctx, object, old) {
      const kept = conditionsOf(old).filter(isDecision);
      const others = timed(object, old, clock.wallMs()).filter((one) => !isDecision(one));
      const prepared = plain.prepareForUpdate(ctx, object, old);
      const conditions = [...kept, ...others];
      const status = { ...(prepared["status"] as Fields | undefined) };
      return {
        ...prepared,
        status: { ...status, ...(conditions.length === 0 ? {} : { conditions }) },
      };
    },
  };
}

/** Adds /status, and /approval, which changes the conditions alone. */
export function withApproval(spec: ResourceSpec): ResourceSpec {
  const approval = (clock: Pick<Clock, "wallMs">): Strategy => ({
    ...spec.strategy,
    prepareForUpdate(_ctx, object, old) {
      const conditions = timed(object, old, clock.wallMs());
      const status = { ...(old["status"] as Fields | undefined), conditions };
      return { ...old, metadata: object.metadata, status };
    },
  });
  return withSubresources(spec, ({ clock }) => ({
    status: signingStatus(spec.strategy, clock),
    approval: approval(clock),
  }));
}

/** A resource with more endpoints that update its objects. @param strategies by their names */
export function withSubresources(
  spec: ResourceSpec,
  strategies: (parts: ResourceParts) => Readonly<Record<string, Strategy>>,
): ResourceSpec {
  const customize = ({ main, subresources }: SpecStorages, parts: ResourceParts): SpecStorages => {
    const more = Object.entries(strategies(parts)).map(([name, strategy]) => [
      name,
      subresourceStoreOf(spec, parts, strategy),
    ]);
    return { main, subresources: { ...subresources, ...Object.fromEntries(more) } };
  };
  return {
    ...spec,
    get schema() {
      return spec.schema;
    },
    customize,
  };
}
