/**
 * metadata.managedFields, decoded (apimachinery: util/managedfields/internal/managedfields.go).
 *
 * A manager is identified by a JSON text of its name, operation, apiVersion and subresource. The
 * identifier of an applier leaves out the version, so that it stays the same manager when it
 * applies in another version.
 */
import { canonicalJson, compareUtf8, type ManagedFieldsEntry, textOf } from "@quorate/kube-storage";
import { defined, quoteText as goQuote } from "@quorate/proto";
import { type FieldSet, fieldSetFromJson, fieldSetToJson } from "./field-set.ts";

/** What one manager owns, in one version. */
export interface VersionedSet {
  readonly set: FieldSet;
  readonly apiVersion: string;
  /** By server-side apply, not by another write. */
  readonly applied: boolean;
}

/** Sets by manager identifiers. */
export type Managers = ReadonlyMap<string, VersionedSet>;

export interface Managed {
  readonly managers: Managers;
  /** Of the last change by a manager: RFC 3339 in whole seconds. */
  readonly times: ReadonlyMap<string, string>;
}

export const NOTHING_MANAGED: Managed = { managers: new Map(), times: new Map() };

/** @throws Error with Go's text for malformed entries */
export function decodeManagedFields(entries: readonly ManagedFieldsEntry[]): Managed {
  const managers = new Map<string, VersionedSet>();
  const times = new Map<string, string>();
  entries.forEach((entry, at) => {
    checkEntry(entry, at);
    const id = managerId(entry);
    managers.set(id, {
      set: decodeSet(entry),
      apiVersion: defined(entry.apiVersion, "the api version"),
      applied: entry.operation === "Apply",
    });
    if (entry.time) times.set(id, entry.time);
    else times.delete(id);
  });
  return { managers, times };
}

function checkEntry(entry: ManagedFieldsEntry, at: number): void {
  if (entry.operation !== "Apply" && entry.operation !== "Update") {
    throw new Error("operation must be `Apply` or `Update`");
  }
  if (!entry.apiVersion) throw new Error("apiVersion must not be empty");
  if (!entry.fieldsType) throw new Error(`missing fieldsType in managed fields entry ${at}`);
  if (entry.fieldsType !== "FieldsV1") {
    throw new Error(
      `invalid fieldsType ${goQuote(entry.fieldsType)} in managed fields entry ${at}`,
    );
  }
}

function decodeSet(entry: ManagedFieldsEntry): FieldSet {
  try {
    return fieldSetFromJson(entry.fieldsV1 ?? {});
  } catch (error) {
    const why = textOf(error);
    throw new Error(`error decoding versioned set: error decoding set: ${why}`);
  }
}

type ManagerEntry = Pick<
  ManagedFieldsEntry,
  "manager" | "operation" | "apiVersion" | "subresource"
>;

/** The identifier of the manager of an entry. */
export function managerId(entry: ManagerEntry): string {
  const parts: string[] = [];
  const add = (name: string, value: string | undefined): void => {
    if (value) parts.push(`"${name}":${canonicalJson(value)}`);
  };
  add("manager", entry.manager);
  add("operation", entry.operation);
  if (entry.operation !== "Apply") add("apiVersion", entry.apiVersion);
  add("subresource", entry.subresource);
  return `{${parts.join(",")}}`;
}

/** The names in an identifier. */
export function managerOfId(id: string): ManagerEntry {
  return JSON.parse(id) as ManagerEntry;
}

/** @returns the entries in Go's order; undefined if there are none */
export function encodeManagedFields(managed: Managed): ManagedFieldsEntry[] | undefined {
  if (managed.managers.size === 0) return undefined;
  const entries = [...managed.managers].map(([id, versioned]): ManagedFieldsEntry => {
    const { manager, operation, subresource } = managerOfId(id);
    const time = managed.times.get(id);
    return {
      ...(manager && { manager }),
      operation: versioned.applied ? "Apply" : operation,
      apiVersion: versioned.apiVersion,
      ...(time !== undefined && { time }),
      fieldsType: "FieldsV1",
      fieldsV1: fieldSetToJson(versioned.set),
      ...(subresource && { subresource }),
    };
  });
  return entries
    .map((entry) => ({ entry, seconds: secondsOf(entry.time) }))
    .sort((a, b) => compareEntries(a.entry, b.entry, a.seconds - b.seconds))
    .map(({ entry }) => entry);
}

/** @param age the difference of their times */
function compareEntries(a: ManagedFieldsEntry, b: ManagedFieldsEntry, age: number): number {
  return (
    compareUtf8(a.operation ?? "", b.operation ?? "") ||
    age ||
    compareUtf8(a.manager ?? "", b.manager ?? "") ||
    compareUtf8(a.apiVersion ?? "", b.apiVersion ?? "") ||
    compareUtf8(a.subresource ?? "", b.subresource ?? "")
  );
}

/** Seconds since 1970 of an RFC 3339 text; 0 for none. */
export function secondsOf(time: string | undefined): number {
  if (!time) return 0;
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
}
