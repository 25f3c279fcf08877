/**
 * What each method of a member needs permission for, and by which state that is decided:
 *
 *   log     by the state before its entry, on every member alike
 *   own     the same, and the token counts as the member knew it: what users may see of themselves
 *           is not compared with the revision of users and roles (etcd's UserGet and RoleGet)
 *   linear  by a state that has everything that was committed at the call
 *   local   by what the member has applied
 */
import {
  AlarmRequest,
  AuthRoleGetRequest,
  AuthService,
  AuthUserGetRequest,
  ClusterService,
  DeleteRangeRequest,
  KVService,
  LeaseLeasesResponse,
  LeaseRevokeRequest,
  LeaseService,
  LeaseTimeToLiveRequest,
  LeaseTimeToLiveResponse,
  MaintenanceService,
  PutRequest,
  RangeRequest,
  TxnRequest,
  toLatin1,
} from "@quorate/proto";
import { isReadOnlyTxn, isSerializableTxn } from "@quorate/store";
import type { AuthKind } from "./auth-kinds.ts";
import type { Need } from "./auth-model.ts";
import {
  ALL_LEASES,
  alarmNeeds,
  deleteNeeds,
  type KeysOf,
  leaseNeed,
  putNeeds,
  rangeNeeds,
  txnNeeds,
} from "./needs.ts";

/** A call as it is judged. */
export interface CallRules {
  /** By which state a success is judged. */
  readonly served: "log" | "own" | "linear" | "local";
  /** By which state a refusal is. */
  readonly refused: "strict" | "local";
  /** Whether what it needs depends on leases' keys. */
  readonly hasLeases: boolean;
  /**
   * What it needs where leases have these keys. @param response of a success, as far as what it
   * shows decides what it needed
   */
  needs(keysOf: KeysOf, response?: Uint8Array): readonly Need[];
}

type Rules = (bytes: Uint8Array) => CallRules;

const fixed =
  (served: CallRules["served"], refused: CallRules["refused"], needs: readonly Need[]): Rules =>
  () => ({ served, refused, hasLeases: false, needs: () => needs });

const USER: Need = { kind: "user" };
const ROOT: Need = { kind: "root" };
const rootLocal = fixed("local", "local", [ROOT]);
const rootLog = fixed("log", "strict", [ROOT]);

function rangeRules(bytes: Uint8Array): CallRules {
  const request = RangeRequest.decode(bytes);
  const needs = rangeNeeds(request);
  const { serializable } = request;
  return {
    served: serializable ? "local" : "linear",
    refused: serializable ? "local" : "strict",
    hasLeases: false,
    needs: () => needs,
  };
}

function putRules(bytes: Uint8Array): CallRules {
  const request = PutRequest.decode(bytes);
  return {
    served: "log",
    refused: "strict",
    hasLeases: request.lease !== 0n,
    needs: (keysOf) => putNeeds(request, keysOf),
  };
}

function txnRules(bytes: Uint8Array): CallRules {
  const request = TxnRequest.decode(bytes);
  const isLocal = isReadOnlyTxn(request) && isSerializableTxn(request);
  return {
    served: isLocal ? "local" : isReadOnlyTxn(request) ? "linear" : "log",
    refused: isLocal ? "local" : "strict",
    hasLeases: true,
    needs: (keysOf) => txnNeeds(request, keysOf),
  };
}

function revokeRules(bytes: Uint8Array): CallRules {
  const lease = `${LeaseRevokeRequest.decode(bytes).ID}`;
  return {
    served: "log",
    refused: "strict",
    hasLeases: true,
    needs: (keysOf) => [USER, leaseNeed("write", lease, keysOf)],
  };
}

/** The keys that a response shows, whatever the member that was asked knew of the lease. */
function timeToLiveRules(bytes: Uint8Array): CallRules {
  const { ID, keys: withKeys } = LeaseTimeToLiveRequest.decode(bytes);
  return {
    served: "local",
    refused: "local",
    hasLeases: true,
    needs(keysOf, response) {
      if (response === undefined)
        return withKeys ? [USER, leaseNeed("read", `${ID}`, keysOf)] : [USER];
      const { keys } = LeaseTimeToLiveResponse.decode(response);
      return [USER, { kind: "lease", access: "read", keys: keys.map((key) => toLatin1(key)) }];
    },
  };
}

/** The keys of all leases that are listed; a refusal is for those of any. */
function leasesRules(): CallRules {
  return {
    served: "local",
    refused: "local",
    hasLeases: true,
    needs(keysOf, response) {
      if (response === undefined) return [USER, leaseNeed("read", ALL_LEASES, keysOf)];
      const { leases } = LeaseLeasesResponse.decode(response);
      return [USER, ...leases.map(({ ID }) => leaseNeed("read", `${ID}`, keysOf))];
    },
  };
}

const { Range, Put, DeleteRange, Txn, Compact } = KVService.methods;
const { LeaseGrant, LeaseRevoke, LeaseTimeToLive, LeaseLeases } = LeaseService.methods;
const { Alarm, Status, Defragment, Hash, HashKV, MoveLeader } = MaintenanceService.methods;
const { MemberList, MemberAdd, MemberRemove, MemberUpdate, MemberPromote } = ClusterService.methods;
const { AuthStatus, Authenticate, UserGet, RoleGet, ...changes } = AuthService.methods;

const RULES: ReadonlyMap<string, Rules> = new Map<string, Rules>([
  [Range.path, rangeRules],
  [Put.path, putRules],
  [
    DeleteRange.path,
    (bytes) => fixed("log", "strict", deleteNeeds(DeleteRangeRequest.decode(bytes)))(bytes),
  ],
  [Txn.path, txnRules],
  [Compact.path, fixed("log", "local", [ROOT])],
  [LeaseGrant.path, fixed("log", "local", [USER])],
  [LeaseRevoke.path, revokeRules],
  [LeaseTimeToLive.path, timeToLiveRules],
  [LeaseLeases.path, leasesRules],
  [Alarm.path, (bytes) => fixed("local", "local", alarmNeeds(AlarmRequest.decode(bytes)))(bytes)],
  [Status.path, fixed("local", "local", [USER])],
  [MemberList.path, fixed("local", "local", [USER])],
  ...[
    Defragment,
    Hash,
    HashKV,
    MoveLeader,
    MemberAdd,
    MemberRemove,
    MemberUpdate,
    MemberPromote,
  ].map(({ path }): [string, Rules] => [path, rootLocal]),
  [AuthStatus.path, fixed("log", "strict", [])],
  [Authenticate.path, fixed("log", "strict", [])],
  [
    UserGet.path,
    (bytes) => {
      const { name } = AuthUserGetRequest.decode(bytes);
      return fixed("own", "strict", [{ kind: "this-user", name }])(bytes);
    },
  ],
  [
    RoleGet.path,
    (bytes) => {
      const { role } = AuthRoleGetRequest.decode(bytes);
      return fixed("own", "strict", [{ kind: "this-role", name: role }])(bytes);
    },
  ],
  ...Object.values(changes).map(({ path }): [string, Rules] => [path, rootLog]),
]);

/** How a call is judged; undefined for a malformed request, and methods that others judge. */
export function rulesOf(path: string, bytes: Uint8Array): CallRules | undefined {
  try {
    return RULES.get(path)?.(bytes);
  } catch {
    return undefined;
  }
}

/** The paths of the Auth service's requests that change something, and their kinds in the log. */
export const CHANGES: ReadonlyMap<string, AuthKind> = new Map(
  Object.entries(changes)
    .filter(([name]) => !/List$/.test(name))
    .map(([name, { path }]) => [path, `auth${name.replace("Auth", "")}` as AuthKind]),
);
