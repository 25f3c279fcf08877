/**
 * Members that make their certificates themselves (--auto-tls, --peer-auto-tls), and clients that
 * talk to them.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "@quorate/client/node";
import { quorate, skipWithoutEtcdctl } from "../support/executables.ts";
import { TestMember } from "../support/member.ts";
import { freePorts } from "../support/ports.ts";
import { ETCDCTL_3, runProgram } from "../support/snapshots.ts";
import { until } from "../support/until.ts";

const quoratectl = [process.execPath, join(import.meta.dirname, "../../bin/quoratectl.js")];

function fixtures(member: TestMember, side: "client" | "peer") {
  const dir = join(member.options.dataDir, "fixtures", side);
  return { dir, cert: readFileSync(join(dir, "cert.pem"), "utf8"), key: join(dir, "key.pem") };
}

/** Plain connections come to the last member alone, and to the same port as TLS. */
async function plainReads(endpoints: readonly string[]): Promise<void> {
  const plainUrls = endpoints.map((url) => url.replace("https", "http"));
  const refused = connect({ endpoints: plainUrls.slice(0, 2), timeoutMs: 1000 });
  await assert.rejects(refused.get("over"));
  refused.close();
  const plain = connect({ endpoints: plainUrls.slice(2), timeoutMs: 20_000 });
  assert.equal((await plain.get("over")).kvs.length, 1);
  plain.close();
}

test("three members over TLS without a certificate of anybody's", {
  timeout: 200_000,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-auto-tls-"));
  const ports = await freePorts(6);
  const names = ["a", "b", "c"];
  const peerUrls = ports.slice(3).map((port) => `https://127.0.0.1:${port}`);
  const initialCluster = names.map((name, i) => `${name}=${peerUrls[i]}`).join(",");
  const members = names.map((name, i) => {
    const [clientUrl, peerUrl] = [`https://127.0.0.1:${ports[i]}`, peerUrls[i]];
    const dataDir = join(dir, name);
    const flags = [
      `--name=${name}`,
      `--data-dir=${dataDir}`,
      // The last member takes plain connections on the same port.
      `--listen-client-urls=${clientUrl}${name === "c" ? `,${clientUrl.replace("https", "http")}` : ""}`,
      `--advertise-client-urls=${clientUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=${initialCluster}`,
      "--auto-tls",
      "--peer-auto-tls",
      "--self-signed-cert-validity=2",
    ];
    const rest = {
      env: {},
      clientUrl,
      peerUrl,
      dataDir,
      logFile: join(dir, `${name}.log`),
      identity: {},
    };
    return new TestMember({ name, command: quorate.command, flags, ...rest });
  });
  t.after(async () => {
    await Promise.all(members.map((member) => member.kill()));
    rmSync(dir, { recursive: true, force: true });
  });
  for (const member of members) member.start();
  const serves = (member: TestMember, times: number) =>
    until(`${member.name} serves`, () => {
      assert.ok(member.isRunning, member.logTail());
      return (member.log().match(/ready to serve client requests/g)?.length ?? 0) >= times;
    });
  await Promise.all(members.map((member) => serves(member, 1)));

  // A certificate vouches for itself: who has it need not take everything.
  const endpoints = members.map(({ clientUrl }) => clientUrl);
  const ca = members.map((member) => fixtures(member, "client").cert).join("");
  const client = connect({ endpoints, tls: { ca }, timeoutMs: 20_000 });
  t.after(() => client.close());
  await client.put("over", "TLS");
  for (const endpoint of endpoints) {
    const one = connect({
      endpoints: [endpoint],
      tls: { insecureSkipVerify: true },
      timeoutMs: 20_000,
    });
    assert.equal((await one.get("over")).kvs.length, 1, endpoint);
    one.close();
  }
  const outsider = connect({ endpoints, tls: {}, timeoutMs: 1000 });
  await assert.rejects(outsider.get("over"), /self-signed/);
  outsider.close();
  await plainReads(endpoints);
  const skipping = ["--insecure-skip-tls-verify", "--insecure-transport=false"];
  const ours = await runProgram([
    ...quoratectl,
    `--endpoints=${endpoints[0]}`,
    ...skipping,
    "get",
    "over",
  ]);
  assert.equal(ours.stdout, "over\nTLS\n", ours.stderr);
  if (skipWithoutEtcdctl === false) {
    const theirs = await runProgram(
      ["etcdctl", `--endpoints=${endpoints[0]}`, ...skipping, "get", "over"],
      ETCDCTL_3,
    );
    assert.equal(theirs.stdout, "over\nTLS\n", theirs.stderr);
  } else t.diagnostic(skipWithoutEtcdctl);

  // What is in the certificate, and who may read the key.
  const [member] = members as [TestMember];
  for (const side of ["client", "peer"] as const) {
    const { cert, key } = fixtures(member, side);
    const found = new X509Certificate(cert);
    assert.equal(found.subject, "O=etcd");
    assert.ok(found.checkIP("127.0.0.1") !== undefined && found.verify(found.publicKey));
    assert.equal(
      Math.round((found.validToDate.getTime() - found.validFromDate.getTime()) / 86_400_000),
      730,
    );
    assert.equal(statSync(key).mode & 0o777, 0o600);
    assert.equal(statSync(join(member.options.dataDir, "fixtures", side)).mode & 0o777, 0o700);
  }
  // It keeps them.
  const before = [fixtures(member, "client").cert, fixtures(member, "peer").cert];
  await member.terminate();
  member.start();
  await serves(member, 2);
  assert.deepEqual([fixtures(member, "client").cert, fixtures(member, "peer").cert], before);
  const again = connect({
    endpoints: [member.clientUrl],
    tls: { ca: before[0] },
    timeoutMs: 20_000,
  });
  assert.equal((await again.get("over")).kvs.length, 1);
  again.close();
  assert.doesNotMatch(members[1].log(), /remote error|failed to verify/);
});
