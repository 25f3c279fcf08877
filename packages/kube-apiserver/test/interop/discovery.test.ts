/** The server offers what kube-apiserver 1.37.2 offers, by its stored discovery documents. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ApiWorld } from "../support/api-world.ts";

const keptPath = join(import.meta.dirname, "discovery", "kube-apiserver-1.37.json");

interface Groups {
  readonly items: readonly {
    readonly metadata: { readonly name?: string };
    readonly versions: readonly {
      readonly version: string;
      readonly resources: readonly { readonly resource: string }[];
    }[];
  }[];
}

/** Each resource by its group, version and name; besides, the order of groups and versions. */
function rowsOf(documents: readonly Groups[]): Record<string, unknown> {
  const groups = documents.flatMap(({ items }) => items);
  const rows: [string, unknown][] = [
    ["groups", groups.map(({ metadata: { name } }) => name ?? "")],
  ];
  for (const { metadata, versions } of groups)
    for (const { version, resources } of versions)
      for (const one of resources)
        rows.push([`${metadata.name ?? ""}/${version} ${one.resource}`, one]);
  return Object.fromEntries(rows);
}

test("The discovery documents are kube-apiserver's", async (t) => {
  const world = await ApiWorld.open(t);
  const accept = "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io";
  const ours: Groups[] = [];
  for (const path of ["/api", "/apis"])
    ours.push(
      await world.request(path, { headers: { accept } }).then(({ text }) => JSON.parse(text)),
    );
  const kept = JSON.parse(readFileSync(keptPath, "utf8")) as Groups[];
  assert.deepEqual(rowsOf(ours), rowsOf(kept));
});
