/** The stored responses of kube-apiserver 1.36.3, one JSON text a line. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ApiResponse } from "./exchange.ts";

export const keptPath: string = join(import.meta.dirname, "kube-apiserver-1.36.jsonl");

export function keptResponses(): ApiResponse[] {
  if (!existsSync(keptPath)) return [];
  const lines = readFileSync(keptPath, "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as ApiResponse);
}
