/** Who makes a request, and what goes with it to the storage of a resource. */

import type { HttpHead } from "@quorate/host";
import type { Cancellation } from "../meta/cancellation.ts";

/** What handlers pass to storages with every request. */
export interface RequestContext {
  readonly user: UserInfo;
  /** "" for cluster-scoped resources and for lists over all namespaces. */
  readonly namespace: string;
  /** Aborted when the client is gone or the request's timeout has passed. */
  readonly signal: Cancellation;
  /** Adds a Warning header to the response (RFC 9111 code 299). Bounded: later ones are dropped. */
  warn(text: string): void;
}

/** A user (apiserver: pkg/authentication). */
export interface UserInfo {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** The user of requests without credentials, where those are allowed. */
export const ANONYMOUS: UserInfo = {
  name: "system:anonymous",
  uid: "",
  groups: ["system:unauthenticated"],
  extra: {},
};

/** Finds the user of a request. */
export interface Authenticator {
  /**
   * Resolves with undefined where the request has no credential of this kind. Rejects with
   * ApiError 401 for one that is not valid.
   */
  authenticate(head: HttpHead): Promise<UserInfo | undefined>;
}
