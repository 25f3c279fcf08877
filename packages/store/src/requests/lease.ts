/** LeaseGrant, LeaseRevoke and LeaseCheckpoint: the changes to leases by log entries. */
import type {
  LeaseCheckpointRequest,
  LeaseCheckpointResponse,
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseRevokeRequest,
  LeaseRevokeResponse,
} from "@quorate/proto";
import { headerAt } from "../backend/revision.ts";
import type { Steps } from "../backend/steps.ts";
import type { Lessor } from "../lease/lessor.ts";
import type { Mvcc } from "../mvcc/index.ts";

/** Bytes of a lease, as the space quota estimates them. */
export const LEASE_COST_BYTES = 64;

/** @throws EtcdError LeaseNotFound (id 0), LeaseTTLTooLarge, LeaseExist */
export function applyLeaseGrant(
  mvcc: Mvcc,
  lessor: Lessor,
  request: LeaseGrantRequest,
): LeaseGrantResponse {
  const { id, ttlSeconds } = lessor.grant(request.ID, request.TTL);
  return { header: headerAt(mvcc.currentRevision), ID: id, TTL: ttlSeconds, error: "" };
}

/** Keys of a lease that is revoked at once, without steps. */
const MAX_SHORT_KEYS = 64;

/**
 * True if the revocation takes at most some hundred microseconds. @param stepKeys maximum number of
 * keys in one step
 */
export function isShortRevoke(
  lessor: Lessor,
  request: LeaseRevokeRequest,
  stepKeys: number,
): boolean {
  return (lessor.get(request.ID)?.keyCount ?? 0) <= Math.min(MAX_SHORT_KEYS, stepKeys);
}

/**
 * Deletes the lease and its keys at one new revision; without keys the revision does not change.
 * @throws EtcdError LeaseNotFound
 */
export function applyLeaseRevoke(
  mvcc: Mvcc,
  lessor: Lessor,
  request: LeaseRevokeRequest,
): LeaseRevokeResponse {
  lessor.revoke(request.ID, mvcc);
  return { header: headerAt(mvcc.currentRevision) };
}

/**
 * Like applyLeaseRevoke, in steps, for a lease with many keys. The changes become visible with the
 * last step.
 */
export function* revokeInSteps(
  mvcc: Mvcc,
  lessor: Lessor,
  request: LeaseRevokeRequest,
): Steps<LeaseRevokeResponse> {
  yield* lessor.revokeInSteps(request.ID, mvcc);
  return { header: headerAt(mvcc.currentRevision) };
}

export function applyLeaseCheckpoint(
  mvcc: Mvcc,
  lessor: Lessor,
  request: LeaseCheckpointRequest,
): LeaseCheckpointResponse {
  for (const { ID, remaining_TTL } of request.checkpoints) lessor.checkpoint(ID, remaining_TTL);
  return { header: headerAt(mvcc.currentRevision) };
}
