/**
 * What members of earlier releases, and of etcd, do not know. Entries that only some members
 * understand must not enter the log, so all members are asked before the first one:
 *
 *     GET /quorate/features   ->   {"features":["token-roles"]}       another status: it has none
 *
 * Once such an entry was applied, the store says so, and the question ends.
 */
import type { Clock } from "@quorate/host";
import { toUtf8 } from "@quorate/proto";
import { GrpcCode, type HttpHandler, StatusError } from "@quorate/rpc";
import type { Store } from "@quorate/store";
import type { PeerCall } from "@quorate/transport";
import { firstOf } from "./remote-cluster.ts";

const FEATURES_PATH = "/quorate/features";
/** Entries with the roles of a token. */
const TOKEN_ROLES = "token-roles";
const ANSWER_TIMEOUT_MS = 2000;
/** After a refusal, no member is asked for this time. */
const NEXT_QUESTION_MS = 1000;

/** The endpoint of the peer port. */
export function featureEndpoints(): ReadonlyMap<string, HttpHandler> {
  const body = `${JSON.stringify({ features: [TOKEN_ROLES] })}\n`;
  const headers = { "content-type": "application/json" };
  return new Map([[FEATURES_PATH, () => ({ status: 200, headers, body })]]);
}

export interface FeatureParts {
  readonly memberId: bigint;
  readonly clock: Clock;
  readonly call: PeerCall;
  store(): Store;
}

export class TokenRolesSupport {
  readonly #parts: FeatureParts;
  /** Members that know such entries. */
  readonly #known = new Set<bigint>();
  #asking: Promise<void> | undefined;
  #refusedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(parts: FeatureParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when entries with roles may be proposed; undefined: they may now.
   * @throws StatusError UNAVAILABLE where a member does not know them, or does not respond
   */
  ready(): Promise<void> | undefined {
    if (this.#parts.store().auth.hasTokenRoles) return undefined;
    if (this.#parts.clock.monotonicMs() < this.#refusedUntilMs) return Promise.reject(refusal());
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const { store, memberId, call, clock } = this.#parts;
    const members = store().membership.members();
    const others = members.filter(({ id }) => id !== memberId && !this.#known.has(id));
    const asking = { call, timeoutMs: ANSWER_TIMEOUT_MS };
    const known = await Promise.all(
      others.map(async ({ id, peerUrls }) => {
        const has = await firstOf(peerUrls, FEATURES_PATH, asking, ({ body }) => knows(body));
        if (has === true) this.#known.add(id);
        return has === true;
      }),
    );
    if (known.every((one) => one)) return;
    this.#refusedUntilMs = clock.monotonicMs() + NEXT_QUESTION_MS;
    throw refusal();
  }
}

function knows(body: Uint8Array): boolean {
  const { features } = JSON.parse(toUtf8(body)) as { features?: unknown };
  return Array.isArray(features) && features.includes(TOKEN_ROLES);
}

function refusal(): StatusError {
  const text = "etcdserver: not every member of the cluster is known to accept roles of tokens";
  return new StatusError(GrpcCode.Unavailable, text);
}
