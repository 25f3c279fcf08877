/** Values of the types that libraries add. */
import { opaque, type Type } from "./types.ts";
import type { OpaqueValue } from "./values.ts";

/** The base of a library's class; its values compare at no cost. */
export abstract class LibraryValue implements OpaqueValue {
  readonly isLibrary = true;
  abstract readonly celType: Type;
  abstract equals(other: unknown): boolean;
}

export const QUANTITY_TYPE: Type = opaque("kubernetes.Quantity");
export const SEMVER: Type = opaque("kubernetes.Semver");
export const URL_TYPE: Type = opaque("kubernetes.URL");
export const FORMAT: Type = opaque("kubernetes.NamedFormat");
export const IP: Type = opaque("net.IP");
export const CIDR: Type = opaque("net.CIDR");
