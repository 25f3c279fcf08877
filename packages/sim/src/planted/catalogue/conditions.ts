/**
 * Options of the runs in which a planted bug is looked for, where few of the runs that seeds draw
 * can show it.
 */

/**
 * Long waits of members that have little to do cost less if they seldom report them to each other.
 */
export const SABOTAGE = {
  sabotageEveryMs: 600,
  members: 3,
  faultPhaseMs: 3000,
  heartbeatMs: 100,
  electionMs: 1000,
  clients: 3,
  thinkMs: 60,
};
export const MEMBERSHIP = { membershipEveryMs: 500, faultPhaseMs: 3000 };
/** Entries take many slices, and members crash, write their stores and are read between them. */
export const SLICES = {
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
export const HARSH_DISKS = {
  harshDisks: 6,
  members: 3,
  faultPhaseMs: 4000,
  faultEveryMs: 500,
  membershipEveryMs: 0,
};
export const TIGHT_QUOTA = { quotaBytes: 30_000, faultPhaseMs: 3000 };
/** Ranges are read in many slices, while their keys are written and deleted. */
export const READS = {
  readSteps: 1,
  keys: 12,
  reads: 10,
  puts: 10,
  deletes: 6,
  turnMs: 2,
  faultPhaseMs: 4000,
};
/** Users and roles change at a quick pace, on few members with few other faults. */
export const USERS = {
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
export const STREAMS = { streamEveryMs: 20, members: 3, clients: 2, faultPhaseMs: 2500 };
/** Members start all the time, and hear their leader late. */
export const FIRST_ELECTIONS = {
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
export const REMOVALS = {
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
