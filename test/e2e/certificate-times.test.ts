/**
 * Certificates that have expired, are not valid yet, or expire while a connection is open: clients
 * and members that show them, on both ports of three members. Nobody comes in with one, not by a
 * TLS session from before either; who is in stays; a new file brings a member back by itself.
 * @slow
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connect, type SecureVersion } from "node:tls";
import { fromLatin1, KVService } from "@quorate/proto";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  type TestCertificate,
} from "../support/certs.ts";
import { TestClient } from "../support/client.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { quorate } from "../support/executables.ts";
import type { TestMember } from "../support/member.ts";
import { until } from "../support/until.ts";

const HOUR_MS = 3_600_000;
const WRONG_TIME =
  /tls: failed to verify certificate: x509: certificate has expired or is not yet valid/;
const dir = mkdtempSync(join(tmpdir(), "quorate-certificate-times-"));
const path = (name: string): string => join(dir, name);
const ca = makeAuthority("ca");
const identityOf = ({ certPem: cert, keyPem: key }: TestCertificate) => ({
  ca: ca.certPem,
  cert,
  key,
});
const clientOf = (from: number, to: number): TestCertificate =>
  makeCertificate({ name: "c", issuer: ca, usage: "client", validMs: [from, to] });
const good = clientOf(Date.now() - HOUR_MS, Date.now() + HOUR_MS);
const put = { key: fromLatin1("k"), value: fromLatin1("v") };
let cluster: TestCluster | undefined;
let members: readonly TestMember[] = [];

function writePair(name: string, { certPem, keyPem }: TestCertificate): void {
  writeFileSync(path(`${name}-key.pem`), keyPem, { mode: 0o600 });
  writeFileSync(path(`${name}.pem`), certPem);
}

before(async () => {
  writeFileSync(path("ca.pem"), ca.certPem);
  writePair("server", makeLocalCertificate(ca, "server"));
  for (const i of [0, 1, 2]) writePair(`m${i}`, makeLocalCertificate(ca, `m${i}`));
  const flagsOf = (name: string): string[] => [
    `--cert-file=${path("server.pem")}`,
    `--key-file=${path("server-key.pem")}`,
    `--trusted-ca-file=${path("ca.pem")}`,
    `--peer-cert-file=${path(`${name}.pem`)}`,
    `--peer-key-file=${path(`${name}-key.pem`)}`,
    `--peer-trusted-ca-file=${path("ca.pem")}`,
  ];
  cluster = await startCluster({
    executable: quorate,
    tls: { identity: identityOf(good), flagsOf },
  });
  members = cluster.members;
});

after(async () => {
  await cluster?.destroy();
  rmSync(dir, { recursive: true, force: true });
});

const works = (client: TestClient): Promise<boolean> =>
  client.call(KVService.methods.Put, put).then(
    () => true,
    () => false,
  );

/** TLS sessions that a member gave, by version. */
type Sessions = Map<SecureVersion, Buffer>;

/** Whether the member speaks to a client; its session is kept, and the one from before resumed. */
function shake(
  identity: ReturnType<typeof identityOf>,
  version: SecureVersion,
  sessions: Sessions,
): Promise<boolean> {
  return new Promise((resolve) => {
    const session = sessions.get(version);
    const socket = connect({
      ...identity,
      host: "127.0.0.1",
      port: Number(new URL(members[0].clientUrl).port),
      maxVersion: version,
      ALPNProtocols: ["h2"],
      ...(session === undefined ? {} : { session }),
    });
    let hasSpoken = false;
    const leave = () => {
      if (hasSpoken && sessions.has(version)) socket.destroy();
    };
    socket.on("session", (one) => {
      sessions.set(version, one);
      leave();
    });
    socket.once("data", () => {
      hasSpoken = true;
      leave();
    });
    socket.on("error", () => {});
    socket.once("close", () => resolve(hasSpoken));
  });
}

const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;

test("a client whose certificate has expired, or is not valid yet, is refused with the reason", async () => {
  for (const [from, to] of [
    [-2 * HOUR_MS, -1000],
    [HOUR_MS, 2 * HOUR_MS],
  ]) {
    const begin = members[0].log().length;
    const identity = identityOf(clientOf(Date.now() + from, Date.now() + to));
    for (const version of VERSIONS) assert.equal(await shake(identity, version, new Map()), false);
    await until("the member says why", () => {
      const said = members[0].log().slice(begin);
      return said.includes("rejected connection on client endpoint") && WRONG_TIME.test(said);
    });
  }
});

/**
 * Calls `use` with a time at which a certificate ends, and waits for that; once more with a longer
 * life where the machine was too slow for the first.
 */
async function beforeEnd(use: (endsMs: number) => Promise<void>): Promise<void> {
  for (const lifeMs of [8000, 30_000, 120_000]) {
    const endsMs = Date.now() + lifeMs;
    await use(endsMs);
    if (Date.now() >= endsMs) continue;
    // By the second, as certificates have it.
    await delay(endsMs - Date.now() + 1001);
    return;
  }
  assert.fail("everything takes minutes");
}

test("a certificate that ends while its client is connected: that stays, and nothing new comes in", async () => {
  let identity = identityOf(good);
  let standing: TestClient | undefined;
  let sessions: Sessions = new Map();
  await beforeEnd(async (endsMs) => {
    standing?.close();
    identity = identityOf(clientOf(Date.now() - HOUR_MS, endsMs));
    standing = new TestClient(members[0].clientAddress, identity);
    sessions = new Map();
    await works(standing);
    // The second one resumes the session of the first.
    for (const version of [...VERSIONS, ...VERSIONS]) await shake(identity, version, sessions);
  });
  assert.equal(await works(standing!), true, "the open connection stays, as in etcd");
  standing!.close();
  assert.equal(sessions.size, 2);
  const begin = members[0].log().length;
  for (const version of VERSIONS)
    assert.equal(await shake(identity, version, sessions), false, `${version}, resumed`);
  await until("the member says why", () => WRONG_TIME.test(members[0].log().slice(begin)));
  for (const version of VERSIONS) assert.equal(await shake(identity, version, new Map()), false);
});

test("a member whose certificate ends while it is connected stays, does not come back, and does with a new file", async () => {
  const client = new TestClient(members[2].clientAddress, identityOf(good));
  const restart = async (): Promise<void> => {
    await members[2].kill();
    members[2].start();
  };
  await beforeEnd(async (endsMs) => {
    const validMs: [number, number] = [Date.now() - HOUR_MS, endsMs];
    writePair("m2", makeLocalCertificate(ca, "m2", { validMs }));
    await restart();
    // One that is not ready by then stays out: the next one has a longer life.
    await members[2].waitReady(endsMs - Date.now()).catch(() => {});
  });
  await until("writes go on through it", () => works(client));

  const begins = members.map((member) => member.log().length);
  await restart();
  const said = (i: number): string => members[i].log().slice(begins[i]);
  await until("it warns", () => said(2).includes("a certificate has expired: others refuse"));
  for (const i of [0, 1])
    await until(`m${i} says why it refuses m2`, () => WRONG_TIME.test(said(i)));
  const other = new TestClient(members[0].clientAddress, identityOf(good));
  await until("the others write", () => works(other));
  other.close();

  // Not valid yet is no better.
  const early = begins.map((_, i) => members[i].log().length);
  const later: [number, number] = [Date.now() + HOUR_MS, Date.now() + 2 * HOUR_MS];
  writePair("m2", makeLocalCertificate(ca, "m2", { validMs: later }));
  members[2].signal("SIGHUP");
  await until("m2 has taken the file", () =>
    members[2].log().slice(early[2]).includes("TLS files have changed"),
  );
  await until("m0 refuses that too", () => WRONG_TIME.test(members[0].log().slice(early[0])));

  writePair("m2", makeLocalCertificate(ca, "m2"));
  members[2].signal("SIGHUP");
  await until("m2 takes part again", () => works(client));
  client.close();
});
