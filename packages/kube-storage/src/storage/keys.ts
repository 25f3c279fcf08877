/**
 * Keys of objects. Callers use "/configmaps/default/app"; the store has a root before it, from
 * --etcd-prefix: "/registry/configmaps/default/app". (apiserver: PrepareKey in
 * pkg/storage/interfaces.go)
 */
import { StorageError } from "./errors.ts";

/** The root of all keys, without a slash at its end: "/registry". @param prefix as configured */
export function rootOf(prefix: string): string {
  const parts = prefix.split("/").filter((part) => part !== "");
  return parts.length === 0 ? "" : `/${parts.join("/")}`;
}

/**
 * Checks a caller's key, and ends it with "/" for a range. Throws StorageError "InvalidOptions" for
 * a key that is empty, outside the resource, or has "." or ".." as a segment.
 * @param resourcePrefix such as "/configmaps"
 */
export function checkedKey(resourcePrefix: string, key: string, recursive: boolean): string {
  const bad = (text: string): never => {
    throw new StorageError("InvalidOptions", key, text);
  };
  if (/(?:^|\/)\.\.?(?:\/|$)/.test(key)) bad(`invalid key: ${JSON.stringify(key)}`);
  if (key === "" || key === "/") bad(`empty key: ${JSON.stringify(key)}`);
  const whole = recursive && !key.endsWith("/") ? `${key}/` : key;
  if (!whole.startsWith(resourcePrefix))
    bad(
      `invalid key: ${JSON.stringify(key)} lacks resource prefix: ${JSON.stringify(resourcePrefix)}`,
    );
  return whole;
}

/** The first key after all keys with this prefix, which ends with "/". */
export function endOfPrefix(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}
