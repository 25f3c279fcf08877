/** A member of ours beside the voters of an etcd cluster, which compares and changes nothing. */
export {
  type Answer,
  type Comparison,
  compare,
  type Different,
  firstDifferent,
  type HashSource,
} from "./src/compare.ts";
export { Coverage } from "./src/coverage.ts";
export { type KeyDifference, type KeyReader, locate, type PageRequest } from "./src/locate.ts";
export { type Otherwise, OtherwiseCounter, type OtherwiseLimits } from "./src/otherwise.ts";
export { shadowPages } from "./src/page.ts";
export { type FoundDifference, type ShadowReport, verdictOf } from "./src/report.ts";
