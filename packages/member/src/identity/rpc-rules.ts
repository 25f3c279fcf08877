/**
 * What each RPC needs while users and roles are enforced: one row for every method that a member
 * serves. A method without a row is refused.
 */
import {
  AuthService,
  ClusterService,
  defined,
  ElectionService,
  KVService,
  LeaseService,
  LockService,
  MaintenanceService,
  WatchService,
} from "@quorate/proto";

/**
 * - "open": no user
 * - "user": a user, whatever its roles
 * - "root": the role root
 * - "keys": a user with permission for the keys of the request, which is decided where the request
 *   is applied, read or watched
 */
export type RpcRule = "open" | "user" | "root" | "keys";

interface Row {
  readonly rule: RpcRule;
  /** What is needed in full, for the documentation. */
  readonly needs: string;
}

const OPEN: Row = { rule: "open", needs: "nothing" };
const USER: Row = { rule: "user", needs: "a user" };
const ROOT: Row = { rule: "root", needs: "the role root" };
const keys = (needs: string): Row => ({ rule: "keys", needs });

const READ = "read permission for the range";
const CONTEST = "read and write permission for the keys under NAME/";

type Methods = { readonly [name: string]: { readonly path: string } };
type Rows<M extends Methods> = { readonly [K in keyof M]: Row };

function rows<M extends Methods>(service: { readonly methods: M }, table: Rows<M>) {
  const methods = Object.entries(service.methods);
  return methods.map(([name, { path }]) => [path, defined(table[name], name)] as const);
}

/** The rows by path. */
export const RPC_RULES: ReadonlyMap<string, Row> = new Map([
  ...rows(KVService, {
    Range: keys(READ),
    RangeStream: keys(READ),
    Put: keys(
      "write permission for the key, and for the keys attached to its lease; read too for prev_kv",
    ),
    DeleteRange: keys("write permission for the range; read too for prev_kv"),
    Txn: keys("what its comparisons and both branches need, at every level"),
    Compact: ROOT,
  }),
  ...rows(WatchService, { Watch: keys(`${READ}, for each watch`) }),
  ...rows(LeaseService, {
    LeaseGrant: USER,
    LeaseRevoke: keys("a user, and write permission for the keys attached to the lease"),
    LeaseKeepAlive: keys("a user, and write permission for the keys attached to the lease"),
    LeaseTimeToLive: keys("a user; to see its keys read permission for them"),
    LeaseLeases: keys("a user, and read permission for the keys attached to leases"),
  }),
  ...rows(ClusterService, {
    MemberAdd: ROOT,
    MemberRemove: ROOT,
    MemberUpdate: ROOT,
    MemberPromote: ROOT,
    MemberList: USER,
  }),
  ...rows(MaintenanceService, {
    Alarm: keys("a user to list alarms, the role root to raise or end one"),
    Status: USER,
    Defragment: ROOT,
    Hash: ROOT,
    HashKV: ROOT,
    Snapshot: ROOT,
    MoveLeader: ROOT,
    Downgrade: ROOT,
  }),
  ...rows(AuthService, {
    AuthEnable: ROOT,
    AuthDisable: ROOT,
    AuthStatus: OPEN,
    Authenticate: OPEN,
    UserAdd: ROOT,
    UserGet: keys("the role root, or to be that user"),
    UserList: ROOT,
    UserDelete: ROOT,
    UserChangePassword: ROOT,
    UserGrantRole: ROOT,
    UserRevokeRole: ROOT,
    RoleAdd: ROOT,
    RoleGet: keys("the role root, or to have that role"),
    RoleList: ROOT,
    RoleDelete: ROOT,
    RoleGrantPermission: ROOT,
    RoleRevokePermission: ROOT,
  }),
  ...rows(LockService, {
    Lock: keys(CONTEST),
    Unlock: keys("write permission for the key"),
  }),
  ...rows(ElectionService, {
    Campaign: keys(CONTEST),
    Proclaim: keys("read and write permission for the leader's key"),
    Leader: keys("read permission for the keys under NAME/"),
    Observe: keys("read permission for the keys under NAME/"),
    Resign: keys("read and write permission for the leader's key"),
  }),
]);
