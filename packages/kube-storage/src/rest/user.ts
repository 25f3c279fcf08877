/** Who makes a request (apiserver: pkg/authentication). */
import type { HttpHead } from "@quorate/host";

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
