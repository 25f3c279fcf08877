/** Where the keys of a round are. */

/** All of them lie from here to there. */
export const FIRST_KEY = "k";
export const END_KEY = "n";
/** The shared keys: a few, so that clients meet. */
export const SHARED = { key: "k", end: "l" };
export const SHARED_KEYS = 10;
/** The keys that hang on leases, one on each. */
export const LEASE_KEYS = { key: "m", end: "n" };
