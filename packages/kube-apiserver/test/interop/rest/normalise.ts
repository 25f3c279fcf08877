/** Removes from a response what differs between two good servers: ids, times and revisions. */
import type { ApiResponse } from "./exchange.ts";

const UID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const AGE = /^(?:\d+y)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?$/;
/** Values of these fields are replaced. */
const REPLACED: Readonly<Record<string, string>> = {
  creationTimestamp: "<time>",
  deletionTimestamp: "<time>",
  time: "<time>",
  resourceVersion: "<revision>",
};

function textOf(text: string): string {
  return text
    .replace(UID, "<uid>")
    .replace(/(ResourceVersion in the precondition) \(\d+\)/g, "$1 (<revision>)")
    .replace(/(ResourceVersion in precondition:) \d+/g, "$1 <revision>")
    .replace(/(in record|in object meta:) (\(?)\d+(\)?)/g, "$1 $2<revision>$3")
    .replace(/\bgen-[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, "gen-<random>")
    .replace(/\bGen_[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, "Gen_<random>");
}

function cell(value: unknown): unknown {
  if (typeof value !== "string" || value === "") return plain(value);
  if (/^\d{4}-\d\d-\d\dT[\d:]+Z$/.test(value)) return "<time>";
  return AGE.test(value) ? "<age>" : plain(value);
}

type Entry = Record<string, unknown>;

/** The entries of /scale have no time in Kubernetes, which puts them first; here they have one. */
function entries(all: readonly Entry[]): unknown[] {
  const texts = all.map(({ time: _, ...rest }) => JSON.stringify(rest));
  return texts.sort().map((text) => JSON.parse(text) as unknown);
}

/** Causes come in the order of Kubernetes' functions, and again from each; both mean nothing. */
function causes(all: readonly unknown[]): unknown[] {
  const texts = all.map((cause) => JSON.stringify(plain(cause)));
  return [...new Set(texts)].sort().map((text) => JSON.parse(text) as unknown);
}

/** Kubernetes leaves the kind out of the items of a list of built-in objects. */
function item(value: unknown): unknown {
  const { kind: _, apiVersion: __, ...rest } = value as Record<string, unknown>;
  return plain(rest);
}

function plain(value: unknown): unknown {
  if (typeof value === "string") return textOf(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const result: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    const replaced = Object.hasOwn(REPLACED, name) ? REPLACED[name] : undefined;
    if (name === "cells") result[name] = (inner as unknown[]).map(cell);
    // Descriptions of columns are texts of our own.
    else if (name === "causes") result[name] = causes(inner as unknown[]);
    else if (name === "managedFields") result[name] = entries(inner as Entry[]);
    else if (name === "items" && Array.isArray(inner)) result[name] = inner.map(item);
    else if (name === "columnDefinitions") {
      result[name] = (inner as Record<string, unknown>[]).map(
        ({ description: _, ...rest }) => rest,
      );
    } else {
      result[name] = replaced !== undefined && typeof inner === "string" ? replaced : plain(inner);
    }
  }
  return result;
}

/** The response without what may differ. */
export function normalised({ status, warning, body }: ApiResponse): ApiResponse {
  return { status, ...(warning === undefined ? {} : { warning }), body: plain(body) };
}
