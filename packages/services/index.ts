/** etcd's v3 services, locks and elections, on a member. */
export { toStatusError, withStatuses } from "./src/calls/results.ts";
export { controlAccess, crossOrigin, type HttpAccess } from "./src/http/access.ts";
export {
  contextOf,
  ExchangeCaller,
  type RequestOf,
  type ResponseOf,
  ServiceCalls,
} from "./src/http/exchange-call.ts";
export { refuseCrossSite } from "./src/http/same-site.ts";
export { SharedAnswer } from "./src/http/shared-answer.ts";
export { rpcObserver, SlowCalls } from "./src/v3/observer.ts";
export { withStandardServices } from "./src/v3/standard.ts";
export { pageTable, serviceTable } from "./src/v3/table.ts";
