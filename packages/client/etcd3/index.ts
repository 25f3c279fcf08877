/**
 * The client in the shape of npm's etcd3 1.1: a program that uses that package changes one import.
 * docs/guide/migration-from-etcd3.md says what differs.
 */
export * from "./auth.ts";
export {
  ComparatorBuilder,
  comparator,
  compareTarget,
  DeleteBuilder,
  type IOperation,
  MultiRangeBuilder,
  PutBuilder,
  RangeBuilder,
  SingleRangeBuilder,
} from "./builder.ts";
export { Campaign, Election, ElectionObserver } from "./election.ts";
export * from "./errors.ts";
export { Etcd3 } from "./etcd3.ts";
export { type ILeaseOptions, Lease, LeaseState } from "./lease.ts";
export { Lock } from "./lock.ts";
export * from "./messages.ts";
export { Namespace } from "./namespace.ts";
export type { CallContext, CallOptions, CallOptionsFactory, IOptions, IPolicy } from "./options.ts";
export { type Rangable, Range } from "./range.ts";
export * from "./services.ts";
export { type ISTMOptions, Isolation, SoftwareTransaction } from "./stm.ts";
export { WatchBuilder, Watcher } from "./watch.ts";
