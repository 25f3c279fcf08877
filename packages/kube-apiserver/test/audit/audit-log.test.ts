import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { ANONYMOUS } from "@quorate/kube-storage";
import { AuditOutput, MAX_AUDIT_QUEUE_BYTES } from "@quorate/server/node";
import { until } from "../../../../test/support/until.ts";
import { MAX_POLICY_BYTES, openAuditLog } from "../../node/audit-log.ts";
import { DEFAULT_SERVE_OPTIONS } from "../../node/serve-options.ts";

const deps = { clock: nodeClock, logger: silentLogger };
const POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";

function files(t: { after(task: () => void): void }, policy = POLICY) {
  const dir = mkdtempSync(join(tmpdir(), "audit-log-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const policyFile = join(dir, "policy.yaml");
  writeFileSync(policyFile, policy);
  return { dir, options: { ...DEFAULT_SERVE_OPTIONS.audit, policyFile, path: join(dir, "a.log") } };
}

/** A request of a client whose User-Agent is long. */
const request = {
  head: {
    method: "GET",
    path: "/version",
    query: "",
    peerCommonName: undefined,
    headers: new Map([["user-agent", "x".repeat(900)]]),
    peerAddress: "127.0.0.1:1",
  },
  auditId: "1",
  isLong: false,
  startedMs: 0,
  attributes: {
    user: ANONYMOUS,
    verb: "get",
    isResourceRequest: false,
    namespace: "",
    group: "",
    version: "",
    resource: "",
    subresource: "",
    name: "",
    path: "/version",
  },
};

test("A full file is moved away under a name with its time", async (t) => {
  const { dir, options } = files(t);
  const log = await openAuditLog({ ...options, maxSizeMib: 1 }, deps);
  for (let i = 0; i < 1000; i++) log!.auditor.begin(request);
  await log!.close();
  const names = readdirSync(dir).filter((name) => name.endsWith(".log"));
  assert.equal(names.length, 2);
  assert.match(names[0], /^a-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log$/);
  const texts = names.map((name) => readFileSync(join(dir, name), "utf8"));
  assert.equal(texts.join("").trimEnd().split("\n").length, 1000);
});

test("While the disk is full lines wait, are dropped at the bound, and are written later", async (t) => {
  const { options } = files(t);
  let isFull = true;
  const written: Uint8Array[] = [];
  const target = {
    isFile: true,
    sizeBytes: 0,
    sinceMs: 0,
    close: async () => {},
    write: async (bytes: Uint8Array) => {
      if (isFull) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
      written.push(bytes);
      return bytes.length;
    },
  };
  const settings = { path: options.path, maxFileBytes: 0, maxFileAgeMs: 0, keepFiles: 0 };
  const output = new AuditOutput(settings, { ...deps, open: async () => target });
  const log = await openAuditLog(
    { ...options, isStrict: true },
    {
      ...deps,
      newOutput: async () => output,
    },
  );
  log!.auditor.begin(request);
  await until("the failure is known", () => !output.isWritable);
  assert.equal(log!.auditor.begin(request), "refused");
  const line = "x".repeat(1024 * 1024);
  for (let i = 0; i <= MAX_AUDIT_QUEUE_BYTES / line.length; i++) output.write(line);
  assert.ok(output.droppedLines > 0);
  assert.ok(output.queueBytes <= MAX_AUDIT_QUEUE_BYTES);
  isFull = false;
  await until("it is written again", () => output.isWritable);
  assert.notEqual(log!.auditor.begin(request), "refused");
  await log!.close();
});

test("A policy or a path that cannot be used is refused; without one nothing is recorded", async (t) => {
  const { dir, options } = files(t);
  assert.equal(await openAuditLog({ ...options, path: "" }, deps), undefined);
  assert.equal(await openAuditLog({ ...options, policyFile: "" }, deps), undefined);
  const none = openAuditLog({ ...options, policyFile: join(dir, "none") }, deps);
  await assert.rejects(none, /--audit-policy-file .*none: ENOENT/);
  const directory = openAuditLog({ ...options, path: dir }, deps);
  await assert.rejects(directory, /--audit-log-path: cannot open/);
  const empty = files(t, "apiVersion: audit.k8s.io/v1\nkind: Policy\n");
  await assert.rejects(openAuditLog(empty.options, deps), /loaded illegal policy with 0 rules/);
  const long = files(t, `${POLICY}#${"x".repeat(MAX_POLICY_BYTES)}`);
  await assert.rejects(openAuditLog(long.options, deps), /more than 1048576 bytes/);
});
