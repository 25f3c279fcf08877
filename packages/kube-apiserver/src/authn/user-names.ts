/**
 * Names of users, groups and extra fields that the server itself knows (apiserver:
 * pkg/authentication/user/user.go, pkg/authentication/serviceaccount/util.go).
 */
import type { UserInfo } from "@quorate/kube-storage";

export const ANONYMOUS_NAME = "system:anonymous";
export const AUTHENTICATED_GROUP = "system:authenticated";
export const UNAUTHENTICATED_GROUP = "system:unauthenticated";
/** Members may do everything; no authorizer refuses them. */
export const MASTERS_GROUP = "system:masters";
export const NODES_GROUP = "system:nodes";
export const NODE_PREFIX = "system:node:";
export const ALL_SERVICE_ACCOUNTS_GROUP = "system:serviceaccounts";

/** Keys of `extra`. */
export const CREDENTIAL_ID_KEY = "authentication.kubernetes.io/credential-id";
export const POD_NAME_KEY = "authentication.kubernetes.io/pod-name";
export const POD_UID_KEY = "authentication.kubernetes.io/pod-uid";
export const NODE_NAME_KEY = "authentication.kubernetes.io/node-name";
export const NODE_UID_KEY = "authentication.kubernetes.io/node-uid";

const SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:";
const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const MAX_SUBDOMAIN_LENGTH = 253;

export interface ServiceAccountName {
  readonly namespace: string;
  readonly name: string;
}

export function serviceAccountUsername(namespace: string, name: string): string {
  return `${SERVICE_ACCOUNT_PREFIX}${namespace}:${name}`;
}

export function serviceAccountGroups(namespace: string): readonly string[] {
  return [ALL_SERVICE_ACCOUNTS_GROUP, `${ALL_SERVICE_ACCOUNTS_GROUP}:${namespace}`];
}

/** The account that a user's name stands for; undefined for a user of another kind. */
export function serviceAccountOf(username: string): ServiceAccountName | undefined {
  if (!username.startsWith(SERVICE_ACCOUNT_PREFIX)) return undefined;
  const [namespace = "", name, more] = username.slice(SERVICE_ACCOUNT_PREFIX.length).split(":");
  if (name === undefined || more !== undefined || !DNS_LABEL.test(namespace)) return undefined;
  if (name.length > MAX_SUBDOMAIN_LENGTH || !DNS_SUBDOMAIN.test(name)) return undefined;
  return { namespace, name };
}

/** The node that a user's name stands for; undefined for a user of another kind. */
export function nodeOf(username: string): string | undefined {
  if (!username.startsWith(NODE_PREFIX)) return undefined;
  const name = username.slice(NODE_PREFIX.length);
  return name.length <= MAX_SUBDOMAIN_LENGTH && DNS_SUBDOMAIN.test(name) ? name : undefined;
}

/** Adds system:authenticated, unless the user is anonymous or has a group of that kind. */
export function withAuthenticatedGroup(user: UserInfo): UserInfo {
  const { groups } = user;
  if (user.name === ANONYMOUS_NAME) return user;
  if (groups.includes(AUTHENTICATED_GROUP) || groups.includes(UNAUTHENTICATED_GROUP)) return user;
  return { ...user, groups: [...groups, AUTHENTICATED_GROUP] };
}
