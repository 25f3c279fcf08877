/** LeaseGrant, LeaseRevoke and LeaseCheckpoint: what happens to leases by entries of the log. */
import type {
  LeaseCheckpointRequest,
  LeaseCheckpointResponse,
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseRevokeRequest,
  LeaseRevokeResponse,
} from "@quorate/proto";
import type { Lessor } from "../lease/lessor.ts";
import type { Mvcc } from "../mvcc/index.ts";
import type { Steps } from "../steps.ts";
import { headerAt } from "./header.ts";

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
 * True if the revocation takes no more than some hundred microseconds. @param stepKeys keys that
 * one step looks at, at most
 */
export function isShortRevoke(
  lessor: Lessor,
  request: LeaseRevokeRequest,
  stepKeys: number,
): boolean {
  return (lessor.get(request.ID)?.keyCount ?? 0) <= Math.min(MAX_SHORT_KEYS, stepKeys);
}

/**
 * Its keys are deleted at one new revision; without keys the revision stays. @throws EtcdError
 * LeaseNotFound
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
 * As applyLeaseRevoke, in steps, for a lease with many keys. Nothing of it is seen before the last.
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
