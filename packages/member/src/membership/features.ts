/**
 * What members of earlier releases, and of etcd, do not know. Entries that only some members
 * understand must not enter the log, so all members are asked before the first one:
 *
 *     GET /quorate/features   ->   {"features":["token-roles", ...]}    another status: it has none
 *
 *     token-roles      entries with the roles of a token; refused until all members know them
 *     user-creations   the entry from which on members note when users are made; not made until
 *                      all members know it
 *
 * Once such an entry was applied, the store says so, and the question ends.
 */
import type { Clock, HttpHandler } from "@quorate/host";
import { GrpcCode, toUtf8 } from "@quorate/proto";
import { StatusError } from "@quorate/rpc";
import type { Store } from "@quorate/store";
import type { PeerCall } from "@quorate/transport";
import type { StoreRef } from "../reads/store-ref.ts";
import { firstOf } from "./remote-cluster.ts";

const FEATURES_PATH = "/quorate/features";
/** By the store that says that such an entry was applied. */
const FEATURES = {
  "token-roles": ({ auth }: Store): boolean => auth.hasTokenRoles,
  "user-creations": ({ auth }: Store): boolean => auth.notesCreations,
} as const;

export type Feature = keyof typeof FEATURES;

const ANSWER_TIMEOUT_MS = 2000;
/** After a refusal, no member is asked for this time. */
const NEXT_QUESTION_MS = 1000;

/** The endpoint of the peer port. */
export function featureEndpoints(
  store: () => Pick<Store, "followsEtcd">,
): ReadonlyMap<string, HttpHandler> {
  const headers = { "content-type": "application/json" };
  const answer = () => {
    const { followsEtcd } = store();
    const body = `${JSON.stringify({ features: Object.keys(FEATURES), followsEtcd })}\n`;
    return { status: 200, headers, body };
  };
  return new Map([[FEATURES_PATH, answer]]);
}

/**
 * Whether a cluster has, or had, members of etcd: one of its members does not know the question,
 * or says so. Undefined where none of them responds.
 * @param urls peer URLs of all members
 */
export async function hasEtcdMembers(
  urls: readonly string[],
  call: PeerCall,
  timeoutMs: number,
): Promise<boolean | undefined> {
  const answers = urls.map(async (url) => {
    try {
      const { status, body } = await call(url, FEATURES_PATH, undefined, timeoutMs);
      if (status === 404) return true;
      if (status !== 200) return undefined;
      const { followsEtcd } = JSON.parse(toUtf8(body)) as { followsEtcd?: unknown };
      return followsEtcd === true;
    } catch {
      return undefined;
    }
  });
  const found = await Promise.all(answers);
  return found.includes(true) || (found.includes(false) ? false : undefined);
}

export interface FeatureParts {
  readonly memberId: bigint;
  readonly clock: Clock;
  readonly call: PeerCall;
  readonly store: StoreRef;
}

/** What all members are asked about one feature. */
export class FeatureSupport {
  readonly #feature: Feature;
  readonly #parts: FeatureParts;
  /** Members that know such entries. */
  readonly #known = new Set<bigint>();
  #asking: Promise<void> | undefined;
  #refusedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(feature: Feature, parts: FeatureParts) {
    this.#feature = feature;
    this.#parts = parts;
  }

  /** Whether such an entry was applied here: every member knows them. */
  get isSettled(): boolean {
    return FEATURES[this.#feature](this.#parts.store.current);
  }

  /**
   * Resolves when such entries may be proposed; undefined: they may now.
   * @throws StatusError UNAVAILABLE where a member does not know them, or does not respond
   */
  ready(): Promise<void> | undefined {
    if (this.isSettled) return undefined;
    if (this.#parts.clock.monotonicMs() < this.#refusedUntilMs) return Promise.reject(refusal());
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const { store, memberId, call, clock } = this.#parts;
    const members = store.current.membership.members();
    const others = members.filter(({ id }) => id !== memberId && !this.#known.has(id));
    const asking = { call, timeoutMs: ANSWER_TIMEOUT_MS };
    const known = await Promise.all(
      others.map(async ({ id, peerUrls }) => {
        const has = await firstOf(peerUrls, FEATURES_PATH, asking, ({ body }) =>
          knows(body, this.#feature),
        );
        if (has === true) this.#known.add(id);
        return has === true;
      }),
    );
    if (known.every((one) => one)) return;
    this.#refusedUntilMs = clock.monotonicMs() + NEXT_QUESTION_MS;
    throw refusal();
  }
}

function knows(body: Uint8Array, feature: Feature): boolean {
  const { features } = JSON.parse(toUtf8(body)) as { features?: unknown };
  return Array.isArray(features) && features.includes(feature);
}

function refusal(): StatusError {
  const text = "etcdserver: not every member of the cluster is known to accept roles of tokens";
  return new StatusError(GrpcCode.Unavailable, text);
}
