/**
 * Requests that act as another user (apiserver: pkg/endpoints/filters/impersonation). The headers
 * name the user that is wanted; the client must be allowed to be it.
 *
 *     Impersonate-User: jane          Impersonate-Uid: 42
 *     Impersonate-Group: developers   Impersonate-Extra-scopes: view
 *
 * Constrained modes, which allow single verbs (KEP 5284), come first, then the verb "impersonate".
 * Each value is authorized by itself.
 */
import type { HttpHead } from "@quorate/host";
import type { UserInfo } from "@quorate/kube-storage";
import { ApiError, badRequest } from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";
import type { Authorizer, AuthorizerAttributes } from "../authz/authorizer.ts";
import { forbiddenError } from "./forbidden.ts";
import {
  ANONYMOUS_NAME,
  AUTHENTICATED_GROUP,
  MASTERS_GROUP,
  NODE_NAME_KEY,
  NODES_GROUP,
  nodeOf,
  serviceAccountGroups,
  serviceAccountOf,
  UNAUTHENTICATED_GROUP,
} from "./user-names.ts";

/** Groups and extra values of one request; each costs an authorization. */
export const MAX_IMPERSONATED_VALUES = 1024;
const AUTHENTICATION_GROUP = "authentication.k8s.io";
const EXTRA_PREFIX = "impersonate-extra-";
/** From so many values on, one check for all of them comes first. */
const MANY_VALUES = 4;

/** The user that a request acts as. */
export interface Impersonation {
  readonly user: UserInfo;
  /** The verb of the constrained mode that allowed it; "" for the plain one. */
  readonly constraint: string;
}

/**
 * The user that the request acts as.
 * @param attributes of the request, with the client as its user
 * @returns undefined where the headers name none
 * @throws ApiError 400 for headers that name no user, 403 where the client may not
 */
export async function impersonatedUser(
  head: HttpHead,
  attributes: AuthorizerAttributes,
  authorizer: Authorizer,
): Promise<Impersonation | undefined> {
  const wanted = wantedUser(head);
  if (wanted === undefined) return undefined;
  let first: ApiError | undefined;
  for (const mode of MODES) {
    if (!mode.applies(wanted, attributes.user)) continue;
    try {
      const user = await checkMode(mode, wanted, attributes, authorizer);
      return { user, constraint: mode.name === "" ? "" : `impersonate:${mode.name}` };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      first ??= error;
    }
  }
  throw first as ApiError;
}

/** The user in the headers, as they are. */
function wantedUser({ headers }: HttpHead): UserInfo | undefined {
  const name = headers.get("impersonate-user") ?? "";
  const uid = headers.get("impersonate-uid") ?? "";
  const groups = valuesOf(headers.get("impersonate-group"));
  const extra: Record<string, readonly string[]> = Object.create(null);
  let count = groups.length;
  for (const [header, value] of headers) {
    if (!header.startsWith(EXTRA_PREFIX)) continue;
    const key = unescaped(header.slice(EXTRA_PREFIX.length));
    extra[key] = [...(extra[key] ?? []), ...valuesOf(value)];
    count += extra[key].length;
  }
  if (name === "") {
    if (uid === "" && count === 0) return undefined;
    const shown = goUser(uid, groups, extra);
    throw badRequest(`requested ${shown} without impersonating a user name`);
  }
  if (count > MAX_IMPERSONATED_VALUES) {
    throw badRequest(`more than ${MAX_IMPERSONATED_VALUES} groups and extra values`);
  }
  return { name, uid, groups, extra };
}

/** As Go prints the structure, with its field names. */
function goUser(uid: string, groups: readonly string[], extra: UserInfo["extra"]): string {
  const list = (texts: readonly string[]): string =>
    texts.length === 0 ? "[]string(nil)" : `[]string{${texts.map(goQuote).join(", ")}}`;
  const entries = Object.entries(extra).map(([key, values]) => `${goQuote(key)}:${list(values)}`);
  const map = entries.length === 0 ? "(nil)" : `{${entries.sort().join(", ")}}`;
  return (
    `&user.DefaultInfo{Name:"", UID:${goQuote(uid)}, Groups:${list(groups)}, ` +
    `Extra:map[string][]string${map}}`
  );
}

/** Repeated headers arrive as one, joined by ", ". */
function valuesOf(header: string | undefined): readonly string[] {
  return header === undefined ? [] : header.split(", ");
}

function unescaped(key: string): string {
  try {
    return decodeURIComponent(key).toLowerCase();
  } catch {
    return key;
  }
}

interface Mode {
  /** "" for the mode of the plain verb "impersonate". */
  readonly name: string;
  applies(wanted: UserInfo, client: UserInfo): boolean;
}

const MODES: readonly Mode[] = [
  {
    name: "associated-node",
    applies: (wanted, client) => {
      const node = hasOnlyName(wanted) ? nodeOf(wanted.name) : undefined;
      if (node === undefined || serviceAccountOf(client.name) === undefined) return false;
      const own = client.extra[NODE_NAME_KEY] ?? [];
      return own.length === 1 && own[0] === node;
    },
  },
  {
    name: "arbitrary-node",
    applies: (wanted) => hasOnlyName(wanted) && nodeOf(wanted.name) !== undefined,
  },
  {
    name: "serviceaccount",
    applies: (wanted) => hasOnlyName(wanted) && serviceAccountOf(wanted.name) !== undefined,
  },
  {
    name: "user-info",
    applies: ({ name }) => nodeOf(name) === undefined && serviceAccountOf(name) === undefined,
  },
  { name: "", applies: () => true },
];

function hasOnlyName({ uid, groups, extra }: UserInfo): boolean {
  return uid === "" && groups.length === 0 && Object.keys(extra).length === 0;
}

type Check = (attributes: AuthorizerAttributes) => Promise<void>;

async function checkMode(
  mode: Mode,
  wanted: UserInfo,
  request: AuthorizerAttributes,
  authorizer: Authorizer,
): Promise<UserInfo> {
  const isConstrained = mode.name !== "";
  const isAssociated = mode.name === "associated-node";
  const client = isAssociated ? withoutExtra(request.user) : request.user;
  const check: Check = async (attributes) => {
    const { decision, reason } = await authorizer.authorize(attributes);
    if (decision !== "allow") throw forbiddenError(attributes, reason);
  };
  if (isConstrained) {
    await check({ ...request, user: client, verb: `impersonate-on:${mode.name}:${request.verb}` });
  }
  const verb = isConstrained ? `impersonate:${mode.name}` : "impersonate";
  const group = isConstrained ? AUTHENTICATION_GROUP : "";
  const base = attributesOf(client, verb);
  const actual = await checkName(wanted, { ...base, group }, isConstrained, isAssociated, check);
  const own = { ...base, group: AUTHENTICATION_GROUP };
  if (wanted.uid !== "") await check({ ...own, resource: "uids", name: wanted.uid });
  await checkGroups(wanted.groups, { ...base, group, resource: "groups" }, isConstrained, check);
  await checkExtra(wanted.extra, { ...own, resource: "userextras" }, isConstrained, check);
  return withStandardGroup(actual);
}

function attributesOf(user: UserInfo, verb: string): AuthorizerAttributes {
  return {
    user,
    verb,
    isResourceRequest: true,
    namespace: "",
    group: "",
    version: "v1",
    resource: "",
    subresource: "",
    name: "",
    path: "",
  };
}

/** Decisions for the node of an account must not depend on which node it is. */
function withoutExtra(user: UserInfo): UserInfo {
  const keys = Object.keys(user.extra).sort();
  return { ...user, extra: { "authentication.kubernetes.io/associated-node-keys": keys } };
}

async function checkName(
  wanted: UserInfo,
  base: AuthorizerAttributes,
  isConstrained: boolean,
  isAssociated: boolean,
  check: Check,
): Promise<UserInfo> {
  const account = serviceAccountOf(wanted.name);
  if (account !== undefined) {
    await check({ ...base, resource: "serviceaccounts", ...account });
    return wanted.groups.length > 0
      ? wanted
      : { ...wanted, groups: serviceAccountGroups(account.namespace) };
  }
  const node = isConstrained ? nodeOf(wanted.name) : undefined;
  if (node !== undefined) {
    await check({ ...base, resource: "nodes", name: isAssociated ? "*" : node });
    return { ...wanted, groups: [NODES_GROUP] };
  }
  await check({ ...base, resource: "users", name: wanted.name });
  return wanted;
}

async function checkGroups(
  groups: readonly string[],
  base: AuthorizerAttributes,
  isConstrained: boolean,
  check: Check,
): Promise<void> {
  if (isConstrained) {
    if (groups.includes("")) {
      throw forbiddenError(base, "impersonating the empty string group is not allowed");
    }
    if (groups.includes(MASTERS_GROUP)) {
      const attributes = { ...base, name: MASTERS_GROUP };
      throw forbiddenError(attributes, "impersonating the system:masters group is not allowed");
    }
    if (groups.length >= MANY_VALUES && (await isAllowed({ ...base, name: "*" }, check))) return;
  }
  for (const name of groups) await check({ ...base, name });
}

async function checkExtra(
  extra: UserInfo["extra"],
  base: AuthorizerAttributes,
  isConstrained: boolean,
  check: Check,
): Promise<void> {
  const entries = Object.entries(extra);
  const count = entries.reduce((sum, [, values]) => sum + values.length, 0);
  if (isConstrained) {
    const wrong = entries.map(([key, values]) => extraProblem(key, values)).find((one) => one);
    if (wrong !== undefined) throw forbiddenError(base, wrong);
    const all = { ...base, subresource: "*", name: "*" };
    if (count >= MANY_VALUES && (await isAllowed(all, check))) return;
  }
  for (const [subresource, values] of entries) {
    for (const name of values) await check({ ...base, subresource, name });
  }
}

function extraProblem(key: string, values: readonly string[]): string | undefined {
  if (key === "") return "impersonating the empty string key in extra is not allowed";
  if (!/^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/[^?#]+$/.test(key)) {
    return (
      "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: " +
      `${JSON.stringify(key)}: must be a domain-prefixed path (such as "acme.io/foo")`
    );
  }
  if (values.includes("")) return "impersonating the empty string value in extra is not allowed";
  return undefined;
}

async function isAllowed(attributes: AuthorizerAttributes, check: Check): Promise<boolean> {
  try {
    await check(attributes);
    return true;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
}

/** As for a user with a credential: one of the two groups that everyone has. */
function withStandardGroup(user: UserInfo): UserInfo {
  const { groups, name } = user;
  const isAnonymous = name === ANONYMOUS_NAME;
  if (!isAnonymous && groups.includes(UNAUTHENTICATED_GROUP)) return user;
  const group = isAnonymous ? UNAUTHENTICATED_GROUP : AUTHENTICATED_GROUP;
  return groups.includes(group) ? user : { ...user, groups: [...groups, group] };
}
