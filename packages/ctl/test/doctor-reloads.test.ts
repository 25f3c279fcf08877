/** The doctor finds files about security that a member cannot use. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkReloads } from "../src/doctor/check-settings.ts";
import type { ClusterView } from "../src/doctor/view.ts";
import { MetricsText } from "../src/observe/metrics-text.ts";

function viewOf(...texts: readonly (string | undefined)[]): ClusterView {
  const members = texts.map((text, i) => ({
    label: `m${i + 1}`,
    metrics: text === undefined ? undefined : new MetricsText(text),
  }));
  return { members } as unknown as ClusterView;
}

test("files about security that a member cannot use any more", () => {
  const stale = 'quorate_security_reload_stale{source="tokens"} 1\n';
  const fine = 'quorate_security_reload_stale{source="client_tls"} 0\n';
  const findings = checkReloads(viewOf(fine + stale, fine, undefined));
  assert.deepEqual(
    findings.map(({ severity, member, seen }) => `${severity} ${member}: ${seen}`),
    [
      "warning m1: the keys of tokens cannot be used as they are now; those from before are in force",
    ],
  );
});
