/**
 * Users of whom a proxy in front of the server speaks (apiserver: pkg/authentication/request/
 * headerrequest): a client whose certificate an authority of proxies has signed, under a name that
 * is allowed, says in headers who asks.
 */
import type { HttpHead } from "@quorate/host";
import type { UserInfo } from "@quorate/kube-storage";
import { toUtf8 } from "@quorate/proto";

export interface ProxySettings {
  /** Names in certificates of proxies; empty: any. */
  readonly allowedNames: readonly string[];
  /** The first one with a value counts; so it is with uids. */
  readonly usernameHeaders: readonly string[];
  readonly uidHeaders: readonly string[];
  /** All values of all of them count. */
  readonly groupHeaders: readonly string[];
  /** Before a key of `extra`, which is encoded as in a URL. */
  readonly extraPrefixes: readonly string[];
}

/** The user; a text: why the client is no proxy; undefined: it is one, and speaks of nobody. */
export function proxiedUser(
  head: HttpHead,
  settings: ProxySettings,
): UserInfo | string | undefined {
  const { peerProxyName: name } = head;
  if (name === undefined) return "x509: certificate signed by unknown authority";
  const { allowedNames } = settings;
  if (allowedNames.length > 0 && !allowedNames.includes(name))
    return `x509: subject with cn=${name} is not in the allowed list`;
  const first = (names: readonly string[]): string =>
    names.map((one) => valuesOf(head, one)[0] ?? "").find((value) => value !== "") ?? "";
  const user = first(settings.usernameHeaders);
  if (user === "") return undefined;
  const groups = settings.groupHeaders
    .flatMap((one) => valuesOf(head, one))
    .filter((value) => value !== "");
  return { name: user, uid: first(settings.uidHeaders), groups, extra: extraOf(head, settings) };
}

/** Whether a header says who asks: such headers go on to no other server. */
export function isIdentityHeader(settings: ProxySettings): (name: string) => boolean {
  const { usernameHeaders, uidHeaders, groupHeaders, extraPrefixes } = settings;
  const names = new Set(
    [usernameHeaders, uidHeaders, groupHeaders].flat().map((one) => one.toLowerCase()),
  );
  const prefixes = extraPrefixes.map((one) => one.toLowerCase());
  return (name) => names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}

function extraOf(head: HttpHead, { extraPrefixes }: ProxySettings): UserInfo["extra"] {
  // Keys are the client's: "__proto__" is one like others.
  const extra = new Map<string, string[]>();
  for (const prefix of extraPrefixes.map((one) => one.toLowerCase()))
    for (const name of head.headers.keys()) {
      if (!name.startsWith(prefix)) continue;
      const key = unescaped(name.slice(prefix.length));
      extra.set(key, [...(extra.get(key) ?? []), ...valuesOf(head, name)]);
    }
  return Object.fromEntries(extra);
}

function valuesOf({ headers, repeatedHeaders }: HttpHead, header: string): readonly string[] {
  const name = header.toLowerCase();
  const value = headers.get(name);
  if (value === undefined) return [];
  return (repeatedHeaders?.get(name) ?? [value]).map(textOf);
}

/** A header's value holds bytes: one character each. */
function textOf(value: string): string {
  return toUtf8(Uint8Array.from(value, (char) => char.charCodeAt(0)));
}

function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
