/**
 * The chart's pods through a life: 1, 3, 5, 3, 5 and 1 members, a restart, a lost volume, a
 * scale-down by kubectl, while a client writes. Run by scaling.test.ts in a network and mount
 * namespace of its own; ends with 0 if all is as it must be.
 *
 *     node test/deploy/scaling-scenario.ts DIRECTORY
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse, parseAllDocuments } from "yaml";
import { makeAuthority, makeCertificate } from "../support/certs.ts";
import { findProgram } from "../support/executables.ts";
import { makeBridge } from "../support/sandbox.ts";
import { until } from "../support/until.ts";
import { Kubernetes, type Manifest } from "./pods.ts";
import { NAMESPACE, RELEASE, type Rendering, renderedFile } from "./render-chart.ts";

const dir = process.argv[2];
const chart = join(import.meta.dirname, "../../deploy/helm/quorate");
const values = readFileSync(join(chart, "values.yaml"), "utf8");
const domain = `${NAMESPACE}.svc.cluster.local`;
const scheme = "https";
const nsenter = findProgram("nsenter")!;

const manifests = (what: Rendering): Manifest[] =>
  parseAllDocuments(readFileSync(renderedFile(what), "utf8")).flatMap((one) =>
    one.toJS() === null ? [] : [one.toJS() as Manifest],
  );

/** The names that values.yaml says a secret's certificate must have. */
function namesFor(secret: string): string[] {
  const before = values.slice(0, values.indexOf(`\n  ${secret}:`));
  const comment = /Names: ([^\n]*?)\.(?:\s|$)/.exec(
    before.slice(before.lastIndexOf("Names: ")),
  )?.[1];
  if (comment === undefined) throw new Error(`values.yaml says no names for ${secret}`);
  const filled = comment
    .replaceAll("<release>", RELEASE)
    .replaceAll("<namespace>", NAMESPACE)
    .replaceAll("<cluster.domain>", "cluster.local");
  return filled.split(/, | and /);
}

makeBridge();
const kubernetes = new Kubernetes(dir, domain);
const authority = makeAuthority();
const tls = (parse(values) as { tls: Record<string, string> }).tls;
for (const [secret, dnsNames, usage] of [
  ["serverSecret", namesFor("serverSecret"), "server"],
  ["peerSecret", namesFor("peerSecret"), "both"],
  ["clientSecret", [], "client"],
] as const) {
  const { certPem, keyPem } = makeCertificate({ name: secret, issuer: authority, dnsNames, usage });
  kubernetes.secret(tls[secret], {
    "tls.crt": certPem,
    "tls.key": keyPem,
    "ca.crt": authority.certPem,
  });
}

const startedAt = performance.now();
const say = (text: string) =>
  console.log(`${((performance.now() - startedAt) / 1000).toFixed(1)} s: ${text}`);

const acknowledged: number[] = [];
let lastAckAt = performance.now();
let longestGapMs = 0;
function acked(line: string): void {
  acknowledged.push(Number(line));
  longestGapMs = Math.max(longestGapMs, performance.now() - lastAckAt);
  lastAckAt = performance.now();
}
async function moreWrites(count: number): Promise<void> {
  const goal = acknowledged.length + count;
  await until(`${count} more writes`, () => acknowledged.length >= goal);
}

/** quoratectl in the pod of a client. Empty if it failed. */
async function ctl(pid: number, endpoint: string, ...args: string[]): Promise<string> {
  const flags = [
    `--endpoints=${endpoint}`,
    "--cacert=/etc/quorate/client/ca.crt",
    "--cert=/etc/quorate/client/tls.crt",
  ];
  const command = [
    "/opt/quorate/bin/quoratectl",
    ...flags,
    "--key=/etc/quorate/client/tls.key",
    "--command-timeout=10s",
    ...args,
  ];
  // Into the mounts and the network of the client's process.
  const inside = [
    "--target",
    String(pid),
    "--mount",
    "--net",
    `--root=/proc/${pid}/root`,
    `--wd=/proc/${pid}/root`,
    ...command,
  ];
  try {
    return (
      await promisify(execFile)(nsenter, inside, { encoding: "utf8", maxBuffer: 64 << 20, env: {} })
    ).stdout;
  } catch (error) {
    // The pod is not up yet, or no member can be reached now.
    if (!/No such file|cannot be resolved|deadline exceeded/.test(String(error)))
      say(String(error));
    return "";
  }
}

const service = `${scheme}://${RELEASE}-client.${domain}:2379`;
const install = manifests("install-1");
await kubernetes.apply(install, false);
const file = (name: string) => `/etc/quorate/client/${name}`;
const set = install.find(({ kind }) => kind === "StatefulSet")!;
const node = [
  process.execPath,
  join(import.meta.dirname, "scaling-writer.ts"),
  service,
  file("ca.crt"),
  file("tls.crt"),
  file("tls.key"),
];
const writer = await kubernetes.runClient(set, node, acked);
const inClient = (endpoint: string, ...args: string[]) =>
  ctl(writer.child!.pid!, endpoint, ...args);

/** Name, id and whether it votes, of each member, in order. */
async function members(): Promise<{ name: string; id: string; isVoter: boolean }[]> {
  const lines = (await inClient(service, "member", "list")).trimEnd().split("\n");
  return lines
    .map((line) => line.split(", "))
    .map(([id, , name, , , learner]) => ({ id: id, name: name, isVoter: learner === "false" }));
}
const names = (count: number) => Array.from({ length: count }, (_, i) => `${RELEASE}-${i}`);

/** Waits until exactly these pods are members, all voters and ready. */
async function settled(count: number): Promise<Map<string, string>> {
  let list = await members();
  await until(
    `${count} voters`,
    async () => {
      list = await members();
      const voters = list.flatMap(({ name, isVoter }) => (isVoter ? [name] : []));
      return (
        list.length === count &&
        voters.sort().join() === names(count).join() &&
        [...kubernetes.pods.values()].every((pod) => pod.isReady)
      );
    },
    500,
  );
  say(`${count} voters; ${acknowledged.length} writes, longest gap ${longestGapMs.toFixed(0)} ms`);
  return new Map(list.map(({ name, id }) => [name, id]));
}

const upgrade = (count: 1 | 3 | 5) => kubernetes.apply(manifests(`upgrade-${count}`), true);

await settled(1);
await moreWrites(20);
longestGapMs = 0;
await upgrade(3);
const three = await settled(3);
await moreWrites(20);
await upgrade(5);
const five = await settled(5);
for (const [name, id] of three) assert.equal(five.get(name), id, `${name} kept its id`);

await kubernetes.deletePod(`${RELEASE}-2`);
assert.deepEqual(await settled(5), five, "a restart changes no membership");

await upgrade(3);
assert.deepEqual([...kubernetes.pods.keys()].sort(), names(3));
assert.deepEqual(await settled(3), new Map([...five].filter(([name]) => names(3).includes(name))));
await moreWrites(20);

await kubernetes.deletePod(`${RELEASE}-1`, true);
const mended = await settled(3);
assert.notEqual(
  mended.get(`${RELEASE}-1`),
  five.get(`${RELEASE}-1`),
  "a lost volume makes a new member",
);
assert.equal(mended.get(`${RELEASE}-0`), five.get(`${RELEASE}-0`));

await upgrade(5);
const again = await settled(5);
for (const name of [`${RELEASE}-3`, `${RELEASE}-4`]) {
  assert.notEqual(again.get(name), five.get(name), `${name} is a new member`);
  assert.ok(
    existsSync(join(dir, "claims", name, "removed/member/wal")),
    "the data of the old one are aside",
  );
}
await moreWrites(20);

// By kubectl: the pods go and their members stay, until the next upgrade.
await kubernetes.scale(3);
assert.equal((await members()).length, 5);
await upgrade(3);
await settled(3);

await upgrade(1);
await settled(1);
await moreWrites(20);

const promised = [...acknowledged];
const [only] = [...kubernetes.pods.values()];
const found = await inClient(
  `${scheme}://${only.name}.${RELEASE}.${domain}:2379`,
  "get",
  "w/",
  "--prefix",
  "--keys-only",
);
const keys = new Set(found.split("\n"));
const lost = promised.filter((i) => !keys.has(`w/${String(i).padStart(8, "0")}`));
assert.deepEqual(lost, [], "acknowledged writes are there");
assert.equal(only.restarts, 0, "no container was started again");
writer.child!.kill("SIGTERM");
await kubernetes.close();
say(`done: ${acknowledged.length} writes, none lost, longest gap ${longestGapMs.toFixed(0)} ms`);
process.exit(0);
