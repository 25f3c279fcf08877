/** The objects that an API server makes at its start, as YAML. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { stringify } from "yaml";
import { type ApiAccess, accessOf, exchange } from "../rest/exchange.ts";

export const keptPath: string = join(import.meta.dirname, "kube-apiserver-1.36.yaml");
const FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1";
export const PATHS = [
  `${FLOW}/prioritylevelconfigurations`,
  `${FLOW}/flowschemas`,
  "/apis/scheduling.k8s.io/v1/priorityclasses",
];

export function keptDefaults(): string {
  return readFileSync(keptPath, "utf8");
}

interface Listed {
  readonly kind: string;
  readonly items: readonly {
    readonly metadata: Readonly<Record<string, unknown>>;
    readonly [field: string]: unknown;
  }[];
}

/** All of them, without what differs between two servers. */
export async function defaultsOf(access: ApiAccess): Promise<string> {
  const documents: string[] = [];
  for (const path of PATHS) {
    const { body } = await exchange(access, { method: "GET", path });
    const { kind, items } = body as Listed;
    for (const { metadata, kind: _, apiVersion: __, ...fields } of items) {
      const { name, annotations, generation } = metadata;
      const object = { kind, metadata: { name, annotations, generation }, ...fields };
      documents.push(stringify(timeless(object), { sortMapEntries: true }).trim());
    }
  }
  return `${documents.join("\n---\n")}\n`;
}

function timeless(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, one: unknown) => (key === "lastTransitionTime" ? "<time>" : one)),
  );
}

/** Runs `body` with a server of ours. */
export async function withOurs<T>(body: (access: ApiAccess) => Promise<T>): Promise<T> {
  await using api = await startApiServer();
  return await body(accessOf(api.kubeconfig));
}
