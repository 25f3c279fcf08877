/** The members of a cluster as the operator calls them. */
import type { MemberView, Reached } from "../cluster/observed.ts";

/** A certificate with its key and those that it trusts, as PEM. */
export interface Credentials {
  readonly certPem: string;
  readonly keyPem: string;
  readonly trustedPem: string;
}

/** Where the members of a cluster are, by the names of their pods, and how to show who calls. */
export interface Target {
  readonly urls: ReadonlyMap<string, string>;
  readonly credentials: Credentials;
}

/** The membership, by a quorum. */
export interface Membership {
  readonly members: readonly MemberView[];
  /** Hexadecimal. */
  readonly clusterId: string;
  readonly asksForUsers: boolean;
}

/** A permission of a role: the half-open range of keys, as etcd writes it. */
export interface Permission {
  readonly access: "read" | "write" | "readwrite";
  readonly key: string;
  readonly isPrefix: boolean;
}

/**
 * Calls to members. Those that change something reject where that is refused, or where it is
 * unknown whether it was done; the next look says what is.
 */
export interface Members {
  /** Undefined where no quorum responds in time. */
  membership(target: Target): Promise<Membership | undefined>;
  /** Undefined where it does not respond in time. */
  reach(target: Target, pod: string): Promise<Reached | undefined>;
  addLearner(target: Target, peerUrl: string): Promise<void>;
  /** False while the learner has not caught up. */
  promote(target: Target, id: string): Promise<boolean>;
  remove(target: Target, id: string): Promise<void>;
  moveLeader(target: Target, from: string, to: string): Promise<void>;
  /** Has the cluster ask for users, with the user root for the operator's certificate, or not. */
  askForUsers(target: Target, isWanted: boolean): Promise<void>;
  /**
   * Makes the user and its role, of the same name, as they are to be.
   * @param password undefined to keep the one that is set
   */
  keepUser(
    target: Target,
    name: string,
    password: string | undefined,
    permissions: readonly Permission[],
  ): Promise<void>;
  /** Removes the user and its role, if they are there. */
  dropUser(target: Target, name: string): Promise<void>;
}
