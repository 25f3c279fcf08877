/** Why a test of npm's etcd3 ends in different ways: part of its name, and the reason. */
export const REASONS: readonly (readonly [test: string, reason: string])[] = [
  [
    "rejects hitting invalid hosts",
    "one of two hosts is wrong, and the test wants the failure; ours takes the other host",
  ],
  [
    "touches the lease ttl at the correct interval",
    "ours tells keepaliveFired when the response is there, the test looks before",
  ],
  [
    "marks leases as failed if etcd does not respond to keepalives in time",
    "the test's clock passes 50 s in a lease of 1 s, and wants no loss yet; ours tells it",
  ],
  [
    "automatically retrieves a new token if the existing one is invalid",
    "sets a private field; ours has another (test/client renews a token that the server refused)",
  ],
  ["subscribes in series", "ours opens watches at once, not one after the other"],
  [
    "unsubscribes while the connection is being reestablished",
    "ours resets the stream, and the suite's proxy throws when the connection is reset",
  ],
];
