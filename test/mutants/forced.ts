/**
 * Options of the runs in which a planted bug is looked for, where few of the runs that seeds draw
 * can show it.
 */
import { type Changes, type PlantedBug, USER_BUGS } from "@quorate/sim";

/**
 * Long waits of members that have little to do cost less if they seldom report them to each other.
 */
const SABOTAGE = {
  sabotageEveryMs: 600,
  members: 3,
  faultPhaseMs: 3000,
  heartbeatMs: 100,
  electionMs: 1000,
  clients: 3,
  thinkMs: 60,
};
const MEMBERSHIP = { membershipEveryMs: 500, faultPhaseMs: 3000 };
/** Entries take many slices, and members crash, write their stores and are read between them. */
const SLICES = {
  applySteps: 1,
  keys: 12,
  deletes: 6,
  puts: 10,
  batchIntervalMs: 1,
  quotaBytes: 0,
  faultPhaseMs: 4000,
};
/**
 * Disks that fail in a sync and lose power after the next start, and bits of logs that flip at
 * their ends.
 */
const HARSH_DISKS = {
  harshDisks: 6,
  members: 3,
  faultPhaseMs: 4000,
  faultEveryMs: 500,
  membershipEveryMs: 0,
};
const TIGHT_QUOTA = { quotaBytes: 30_000, faultPhaseMs: 3000 };
/** Ranges are read in many slices, while their keys are written and deleted. */
const READS = {
  readSteps: 1,
  keys: 12,
  reads: 10,
  puts: 10,
  deletes: 6,
  turnMs: 2,
  faultPhaseMs: 4000,
};
/** Users and roles change at a quick pace, on few members with few other faults. */
const USERS = {
  users: true,
  usersEveryMs: 30,
  tokenTtlSeconds: 300,
  signedTokens: false,
  members: 3,
  clients: 3,
  thinkMs: 30,
  keys: 5,
  wholeApi: true,
  faultPhaseMs: 3000,
  leaseClients: 2,
  leasedShare: 0.3,
  membershipEveryMs: 0,
  sabotageEveryMs: 0,
};
/** Ranges are read in parts, slowly, while their keys are written. */
const STREAMS = { streamEveryMs: 20, members: 3, clients: 2, faultPhaseMs: 2500 };
/** Members start all the time, and hear their leader late. */
const FIRST_ELECTIONS = {
  electionAdvance: true,
  members: 5,
  clients: 1,
  faultEveryMs: 150,
  faultPhaseMs: 6000,
  heartbeatMs: 10,
  electionMs: 100,
  loss: 0.1,
  jitterMs: 25,
  maxDownMs: 300,
};
/** One of two members is removed, little is written, and the other crashes soon. */
const REMOVALS = {
  members: 2,
  maxMembers: 2,
  membershipEveryMs: 300,
  batchIntervalMs: 1000,
  clients: 1,
  thinkMs: 500,
  leaseClients: 0,
  hostileEveryMs: 0,
  poisonEveryMs: 0,
  faultEveryMs: 500,
  faultPhaseMs: 3000,
};
const USER_FORCED = Object.fromEntries(Object.keys(USER_BUGS).map((bug) => [bug, USERS])) as Record<
  keyof typeof USER_BUGS,
  Changes["set"]
>;

/**
 * Where a bug shows in few of the runs that seeds draw: those in which it can, so that this does
 * not take all day.
 */
export const FORCED: Partial<Record<PlantedBug, Changes["set"]>> = {
  "difference-unnoticed": SABOTAGE,
  "names-another-member": SABOTAGE,
  // Half a second, in which a client has to read what was altered.
  "serves-while-named": {
    ...SABOTAGE,
    sabotageEveryMs: 400,
    faultPhaseMs: 4000,
    corruptCheckMs: 300,
    faultEveryMs: 100_000,
    selfHeal: true,
    keys: 1,
    reads: 20,
    puts: 1,
    deletes: 0,
    txns: 0,
    compactions: 0,
    serializableShare: 0.5,
    clients: 8,
    thinkMs: 50,
    latencyMs: 1,
    jitterMs: 1,
  },
  "heals-by-word-alone": { ...SABOTAGE, selfHeal: true },
  "snapshot-misses-a-record": { archiveEveryMs: 500 },
  "restore-forgets-leases": { archiveEveryMs: 500, leaseClients: 2 },
  "restore-not-synced": { archiveEveryMs: 500, restores: true },
  "index-before-its-entry": SLICES,
  // An entry takes long, and its first half is on the disk for most of that time.
  "half-an-entry-flushed": {
    ...SLICES,
    turnMs: 20,
    members: 1,
    heartbeatMs: 100,
    electionMs: 1000,
    faultEveryMs: 300,
    clients: 8,
    thinkMs: 24,
    txns: 0,
    backendWriteMs: 0,
    valueBytes: 0,
  },
  "half-an-entry-read": { ...SLICES, reads: 10, turnMs: 2 },
  "read-not-pinned": READS,
  "compaction-ignores-reads": { ...READS, compactions: 10 },
  "update-not-followed": { ...MEMBERSHIP, moves: true },
  "learner-limit-ignored": { ...MEMBERSHIP, maxLearners: 1, replaceEveryMs: 500, maxMembers: 7 },
  "learner-never-asks": { ...MEMBERSHIP, autoPromote: true },
  "survivor-drops-its-tail": { losesMajority: true, faultPhaseMs: 3000 },
  "proposes-unchecked": { hostileEveryMs: 100, faultPhaseMs: 3000 },
  "takes-proposals-unchecked": { poisonEveryMs: 100, members: 3, faultPhaseMs: 3000 },
  "split-frame-loses-its-head": { clientWires: true, faultPhaseMs: 2000 },
  "stream-window-ignored": { clientWires: true, valueBytes: 3000, faultPhaseMs: 2000 },
  "long-frame-taken": { clientWires: true, corruption: 0.01, faultPhaseMs: 2000 },
  "damage-passed-over": { corruption: 0.01, faultPhaseMs: 3000 },
  "snapshot-frame-unchecked": {
    corruption: 0.05,
    snapshotCount: 3,
    catchUpEntries: 1,
    members: 3,
    faultPhaseMs: 4000,
  },
  // What a failed sync left is lost where nothing is written behind it in the same sector.
  "failed-sync-taken-for-durable": { ...HARSH_DISKS, valueBytes: 3000, syncMs: 2 },
  "flip-taken-for-tear": HARSH_DISKS,
  "last-voter-forgets": REMOVALS,
  "lowered-position-unnoticed": { ...HARSH_DISKS, harshDisks: 20 },
  "lost-member-unnoticed": { ...HARSH_DISKS, harshDisks: 20 },
  "refused-put-leaves-its-lease": { leasedShare: 0.5, leaseClients: 3, faultPhaseMs: 3000 },
  "refused-write-goes-on": TIGHT_QUOTA,
  "quota-unchecked": TIGHT_QUOTA,
  "quota-counted-twice": TIGHT_QUOTA,
  "alarm-passes-transactions": { ...TIGHT_QUOTA, txns: 6 },
  "alarm-stops-deletions": { ...TIGHT_QUOTA, deletes: 6 },
  "new-leader-keeps-lease-times": { theme: "handovers" },
  // Learners are promoted as soon as they are added.
  "promotes-by-what-was-sent": {
    membershipEveryMs: 50,
    faultPhaseMs: 2000,
    strictReconfiguration: false,
    members: 3,
    maxMembers: 7,
    maxLearners: 3,
  },
  "ends-on-malformed": { poisonEveryMs: 100, faultPhaseMs: 3000 },
  ...USER_FORCED,
  "parts-of-several-revisions": STREAMS,
  "part-repeats-a-key": STREAMS,
  "parts-beyond-the-limit": STREAMS,
  "advance-despite-a-leader": FIRST_ELECTIONS,
  "token-outlives-its-user-in-the-log": { ...USERS, signedTokens: true },
  "start-forgets-creations": { ...USERS, signedTokens: true },
  "roles-of-a-token-lost-in-the-log": { ...USERS, signedTokens: true },
  "watch-waits-for-no-signature": { ...USERS, signedTokens: true },
  "snapshot-without-users": { ...USERS, snapshotCount: 3, catchUpEntries: 1 },
  // Entries of one turn are applied in one turn.
  "watch-takes-what-came-after": { ...USERS, applySteps: 0 },
};
