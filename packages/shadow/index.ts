/** A member of ours beside the voters of an etcd cluster, which compares and changes nothing. */
export { compare, firstDifferent, type HashSource } from "./src/compare.ts";
export { Coverage } from "./src/coverage.ts";
export { type KeyReader, locate } from "./src/locate.ts";
export { OtherwiseCounter } from "./src/otherwise.ts";
export { shadowPages } from "./src/page.ts";
export { type ShadowReport, verdictOf } from "./src/report.ts";
