/** kube-apiserver's events, as `./dev compare audit --record` has stored them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StartOptions } from "@quorate/kube-apiserver/node";
import { keptAnswers } from "../comparison.ts";
import type { Event } from "./play.ts";
import { POLICY, TOKENS } from "./requests.ts";

/** For each request its events. */
export const keptEvents = (): readonly Event[][] => keptAnswers(import.meta.dirname);

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
