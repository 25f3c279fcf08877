/**
 * A cluster whose members find each other by SRV records, and quoratectl that finds the members,
 * over TLS and by questions to a real name server. The certificates carry the domain alone, and the
 * system's authorities vouch for them: as in etcd, it is the domain that counts.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createAuthority } from "../../scripts/certs.ts";
import { startDns } from "../support/dns.ts";
import { quorate } from "../support/executables.ts";
import { TestMember } from "../support/member.ts";
import { freePorts } from "../support/ports.ts";
import { type Output, runProgram } from "../support/snapshots.ts";
import { until } from "../support/until.ts";

const quoratectl = [process.execPath, join(import.meta.dirname, "../../bin/quoratectl.js")];
const DOMAIN = "cluster.test";

test("members and quoratectl by SRV records, with certificates for the domain", {
  timeout: 200_000,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-discovery-"));
  const authority = await createAuthority("the system's authority");
  const { certPem, keyPem } = await authority.issue({
    commonName: "member",
    hosts: [DOMAIN],
    usage: "both",
  });
  const [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(ca, authority.caPem);
  writeFileSync(cert, certPem);
  writeFileSync(key, keyPem, { mode: 0o600 });
  const ports = await freePorts(6);
  const peers = ports.slice(0, 3).map((port) => `localhost:${port}`);
  const clients = ports.slice(3).map((port) => `localhost:${port}`);
  const dns = await startDns({
    [`_etcd-server-ssl._tcp.${DOMAIN}`]: peers,
    [`_etcd-client-ssl._tcp.${DOMAIN}`]: clients,
    [`_etcd-client._tcp.${DOMAIN}`]: ["localhost:1"],
    "_etcd-client-ssl._tcp.other.test": clients,
  });
  t.after(() => dns.close());
  const env = { ...dns.env, NODE_EXTRA_CA_CERTS: ca };
  mkdirSync(join(dir, "data"));
  const members = peers.map((peer, i) => {
    const [clientUrl, peerUrl] = [`https://${clients[i]}`, `https://${peer}`];
    const dataDir = join(dir, "data", `m${i}`);
    return new TestMember({
      name: `m${i}`,
      command: quorate.command,
      flags: [
        `--name=m${i}`,
        `--data-dir=${dataDir}`,
        `--discovery-srv=${DOMAIN}`,
        "--initial-cluster-token=srv",
        `--listen-client-urls=${clientUrl}`,
        `--advertise-client-urls=${clientUrl}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--cert-file=${cert}`,
        `--key-file=${key}`,
        `--peer-cert-file=${cert}`,
        `--peer-key-file=${key}`,
      ],
      env,
      clientUrl,
      peerUrl,
      dataDir,
      logFile: join(dir, `m${i}.log`),
      identity: {},
    });
  });
  t.after(async () => {
    await Promise.all(members.map((member) => member.kill()));
    rmSync(dir, { recursive: true, force: true });
  });
  for (const member of members) member.start();
  const ctl = (domain: string, ...args: readonly string[]): Promise<Output> =>
    runProgram(
      [...quoratectl, `--discovery-srv=${domain}`, "--insecure-discovery=false", ...args],
      env,
    );

  let health: Output | undefined;
  await until("all three are healthy", async () => {
    const dead = members.find((member) => !member.isRunning);
    assert.equal(dead?.logTail(), undefined);
    health = await ctl(DOMAIN, "endpoint", "health");
    return health.code === 0;
  }).catch((error: Error) =>
    assert.fail(`${error.message}\n${health?.stderr}\n${members[0].logTail()}`),
  );
  for (const client of clients)
    assert.match(health!.stdout + health!.stderr, new RegExp(`https://${client} is healthy`));
  assert.match(health!.stderr, /ignoring discovered insecure endpoint "http:\/\/localhost:1"/);

  assert.equal((await ctl(DOMAIN, "put", "where", "by SRV")).code, 0);
  const { stdout } = await ctl(DOMAIN, "get", "where", "--print-value-only");
  assert.equal(stdout, "by SRV\n");

  // The same members by the records of a domain that is not theirs, and records that are not there.
  const other = await ctl("other.test", "get", "where", "--command-timeout=2s");
  assert.notEqual(other.code, 0);
  assert.match(other.stderr, /does not match certificate's altnames|other\.test/);
  const none = await ctl("none.test", "get", "where");
  assert.equal(none.code, 1);
  assert.match(
    none.stderr,
    /dns lookup errors: lookup _etcd-client-ssl\._tcp\.none\.test: no such host and lookup _etcd-client\._tcp\.none/,
  );
});
