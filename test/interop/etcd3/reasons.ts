/** Why a test of npm's etcd3 does not end the same way everywhere: part of its name, and the reason. */
export const REASONS: readonly (readonly [test: string, reason: string])[] = [];
