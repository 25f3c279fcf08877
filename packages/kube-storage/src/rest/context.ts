/** What handlers pass to the storage of a resource with every request. */

import type { Cancellation } from "../meta/cancellation.ts";
import type { UserInfo } from "./user.ts";

export interface RequestContext {
  readonly user: UserInfo;
  /** "" for cluster-scoped resources and for lists over all namespaces. */
  readonly namespace: string;
  /** Aborted when the client is gone or the request's timeout has passed. */
  readonly signal: Cancellation;
  /** Adds a Warning header to the response (RFC 9111 code 299). Bounded: later ones are dropped. */
  warn(text: string): void;
}
