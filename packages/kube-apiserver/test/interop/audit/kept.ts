/** kube-apiserver's events, as `./dev compare audit --record` has stored them. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StartOptions } from "@quorate/kube-apiserver/node";
import type { Event } from "./play.ts";
import { POLICY, TOKENS } from "./requests.ts";

export const keptPath: string = join(import.meta.dirname, "kube-apiserver-1.36.jsonl");

/** For each request its events. */
export function keptEvents(): readonly Event[][] {
  const lines = readFileSync(keptPath, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as Event[]);
}

/** Options of a server that records into DIR/audit.log. Writes the files that they name. */
export function auditOptions(dir: string): StartOptions {
  const [policyFile, tokenAuthFile] = [join(dir, "policy.yaml"), join(dir, "our-tokens.csv")];
  writeFileSync(policyFile, POLICY);
  writeFileSync(tokenAuthFile, TOKENS);
  return {
    tokenAuthFile,
    audit: {
      policyFile,
      path: join(dir, "audit.log"),
      maxAgeDays: 0,
      maxBackups: 0,
      maxSizeMib: 0,
      compress: false,
      format: "json",
      isStrict: false,
    },
  };
}
