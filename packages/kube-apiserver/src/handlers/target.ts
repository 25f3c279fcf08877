/**
 * What a request is about: the one value that its path is read into. Access control, admission, the
 * audit log and the handlers have it from here (apiserver: endpoints/request/requestinfo.go, and
 * endpoints/installer.go for the forms of paths).
 *
 *     path   /apis/apps/v1/namespaces/foo/deployments/web/scale
 *     value  group "apps", version "v1", namespace "foo", resource "deployments", name "web",
 *            subresource "scale"
 *     form   namespaces/{namespace}/deployments/{name}/scale
 *
 * The form is what is left of the path without its values. The router serves the forms of its
 * resources and no other, so a value cannot stand where another one is expected.
 */
import { isPathSegmentName, parseFieldSelector, type UserInfo } from "@quorate/kube-storage";
import type { AuthorizerAttributes } from "../authz/authorizer.ts";

/** Parts of the path that belong to the namespace itself. */
const NAMESPACE_SUBRESOURCES = new Set(["status", "finalize"]);
const VERBS_IN_PATH = new Set(["proxy", "watch"]);

const VERBS: Readonly<Record<string, string>> = {
  POST: "create",
  GET: "get",
  HEAD: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

const SLASH = 0x2f;

interface Fields {
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  readonly form: string;
  readonly isNamed: boolean;
  readonly isBelowRoot: boolean;
}

const NO_FIELDS: Fields = {
  verb: "",
  group: "",
  version: "",
  namespace: "",
  resource: "",
  subresource: "",
  name: "",
  form: "",
  isNamed: false,
  isBelowRoot: false,
};

/** A request's path and method, read once. Nothing but `Target.of` makes one. */
export class Target {
  /** As sent. */
  readonly method: string;
  /** The path with its escapes decoded; as sent where they are broken. */
  readonly path: string;
  /** Why the path cannot be read; undefined where it can. */
  readonly problem: string | undefined;
  /** Whether it is about resources; else the verb is the method and the path is all there is. */
  readonly isResourceRequest: boolean;
  /** "" for a method that stands for none. */
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  /** "" for requests without one. A namespace is in itself. */
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  /** The name in the path, or the one that the field selector of a list demands; "" for none. */
  readonly name: string;
  /** What stands behind the version, with {namespace} and {name} for values. */
  readonly form: string;
  /** Whether the path itself has a name. */
  readonly isNamed: boolean;
  /** Whether the path begins with /api/ or /apis/GROUP/ as it is written: others have no route. */
  readonly isBelowRoot: boolean;
  /** Makes the type one of its own: no object literal and no copy is a Target. */
  readonly #isMade = true;

  private constructor(
    method: string,
    path: string,
    fields: Fields | undefined,
    problem: string | undefined,
  ) {
    const read = fields ?? { ...NO_FIELDS, verb: method.toLowerCase() };
    const { verb, group, version, namespace, resource, subresource, name } = read;
    this.method = method;
    this.path = path;
    this.problem = problem;
    this.isResourceRequest = fields !== undefined;
    this.verb = verb;
    this.group = group;
    this.version = version;
    this.namespace = namespace;
    this.resource = resource;
    this.subresource = subresource;
    this.name = name;
    this.form = read.form;
    this.isNamed = read.isNamed;
    this.isBelowRoot = read.isBelowRoot;
  }

  /** Reads a request in one pass over its path. @param path as sent, with escapes */
  static of(method: string, path: string, query: Query): Target {
    const decoded = unescapeUrl(path, false);
    if (decoded === undefined) return new Target(method, path, undefined, "its escapes are broken");
    const fields = fieldsOf(method, decoded, query);
    if (fields !== "no resource") return new Target(method, decoded, fields, undefined);
    return new Target(method, decoded, undefined, "no resource follows its verb");
  }

  /** Whether it was made here; for code that runs without the compiler. */
  static isMade(value: unknown): value is Target {
    return typeof value === "object" && value !== null && #isMade in value;
  }

  /** Requests that last as long as the client wants: without a timeout and without a seat. */
  get isLongRunning(): boolean {
    return this.isResourceRequest && (this.verb === "watch" || this.verb === "proxy");
  }
}

/** What a user wants by a request, for authorizers and the audit log. */
export function attributesOf(target: Target, user: UserInfo): AuthorizerAttributes {
  const { verb, isResourceRequest, namespace, group, version } = target;
  const { resource, subresource, name, path } = target;
  return {
    user,
    verb,
    isResourceRequest,
    namespace,
    group,
    version,
    resource,
    subresource,
    name,
    path,
  };
}

/** Undefined for a path outside of /api/VERSION/ and /apis/GROUP/VERSION/. */
function fieldsOf(method: string, path: string, query: Query): Fields | "no resource" | undefined {
  const [prefix, ...segments] = segmentsOf(path);
  if (prefix !== "api" && prefix !== "apis") return undefined;
  const group = prefix === "api" ? "" : segments.shift();
  const [version, first, ...others] = segments;
  if (group === undefined || version === undefined || first === undefined) return undefined;
  const verbInPath = VERBS_IN_PATH.has(first) ? first : "";
  if (verbInPath !== "" && others.length === 0) return "no resource";
  let parts = verbInPath === "" ? [first, ...others] : others;
  const [root, below = "", child] = parts;
  const namespace = root === "namespaces" ? below : "";
  const isWithin =
    root === "namespaces" && child !== undefined && !NAMESPACE_SUBRESOURCES.has(child);
  if (isWithin) parts = parts.slice(2);
  const [resource = "", pathName = "", third = ""] = parts;
  const subresource = verbInPath === "proxy" ? "" : third;
  const base = `${isWithin ? "namespaces/{namespace}/" : ""}${resource}`;
  const named = parts.length > 1 ? `${base}/{name}` : base;
  const whole = parts.length > 2 ? `${named}/${parts.slice(2).join("/")}` : named;
  const form = verbInPath === "" ? whole : `${verbInPath}/${whole}`;
  const { verb, name } = collectionVerb(verbInPath || (VERBS[method] ?? ""), pathName, query);
  const isBelowRoot = prefix === "api" || group !== "" ? path.startsWith(`/${prefix}/`) : false;
  const isNamed = pathName !== "";
  return {
    verb,
    group,
    version,
    namespace,
    resource,
    subresource,
    name,
    form,
    isNamed,
    isBelowRoot,
  };
}

/** A verb without a name is about the collection. */
function collectionVerb(verb: string, name: string, query: Query): { verb: string; name: string } {
  if (name !== "") return { verb, name };
  if (verb === "delete") return { verb: "deletecollection", name };
  if (verb !== "get") return { verb, name };
  const listVerb = query.flag("watch") === true ? "watch" : "list";
  return { verb: listVerb, name: selectedName(query.first("fieldSelector")) };
}

/** The name that a field selector demands, so that permissions on names cover it. */
function selectedName(fieldSelector: string): string {
  if (fieldSelector === "") return "";
  try {
    const name = parseFieldSelector(fieldSelector).exactValue("metadata.name") ?? "";
    return isPathSegmentName(name).length === 0 ? name : "";
  } catch {
    // The list itself is refused for it.
    return "";
  }
}

/** The texts between slashes, without those at both ends. */
function segmentsOf(path: string): string[] {
  let start = 0;
  while (path.charCodeAt(start) === SLASH) start++;
  const trimmed = withoutSlashesBehind(path.slice(start));
  return trimmed === "" ? [] : trimmed.split("/");
}

/** The path without the slashes at its end. */
export function withoutSlashesBehind(path: string): string {
  let end = path.length;
  while (end > 0 && path.charCodeAt(end - 1) === SLASH) end--;
  return path.slice(0, end);
}

/** Parameters of a query beyond this many are ignored. */
export const MAX_QUERY_PARAMETERS = 1000;

/** Decodes "%41" and, in queries, "+"; undefined for a broken escape. */
function unescapeUrl(text: string, inQuery: boolean): string | undefined {
  if (!text.includes("%") && !(inQuery && text.includes("+"))) return text;
  try {
    return decodeURIComponent(inQuery ? text.replaceAll("+", " ") : text);
  } catch {
    return undefined;
  }
}

/** The parameters by name; names and values that cannot be decoded are left out, as in Go. */
export class Query {
  readonly #values = new Map<string, string[]>();

  /** @param text the query without "?" */
  constructor(text: string) {
    if (text === "") return;
    for (const part of text.split("&", MAX_QUERY_PARAMETERS)) {
      if (part === "" || part.includes(";")) continue;
      const mark = part.indexOf("=");
      const name = unescapeUrl(mark === -1 ? part : part.slice(0, mark), true);
      const value = mark === -1 ? "" : unescapeUrl(part.slice(mark + 1), true);
      if (name === undefined || value === undefined) continue;
      const known = this.#values.get(name);
      if (known === undefined) this.#values.set(name, [value]);
      else known.push(value);
    }
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The first value; "" without one. */
  first(name: string): string {
    return this.#values.get(name)?.[0] ?? "";
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** The parameters for another server, in the order of their names (Go: url.Values.Encode). */
  encoded(): string {
    const names = [...this.#values.keys()].sort();
    return names
      .flatMap((name) =>
        this.all(name).map((value) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`),
      )
      .join("&");
  }

  /**
   * A flag as Kubernetes reads it: absent is undefined; "false" and "0" are false, all other values
   * are true (apimachinery: runtime/converter.go).
   */
  flag(name: string): boolean | undefined {
    const value = this.#values.get(name)?.[0];
    if (value === undefined) return undefined;
    return value.toLowerCase() !== "false" && value !== "0";
  }
}
