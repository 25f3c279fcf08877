/**
 * Certificates, authorities and revocation lists are exchanged under three members and their
 * clients while these work: good clients feel nothing, revoked ones are cut off, files that are
 * broken change nothing, and no TLS session of before passes a check that refuses new ones.
 * @slow
 */
import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "node:tls";
import { MAX_TLS_FILE_BYTES } from "@quorate/host/node";
import { fromLatin1, KVService, MaintenanceService } from "@quorate/proto";
import { Agent, request } from "undici";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  makeRevocationList,
  type TestCertificate,
} from "../support/certs.ts";
import { TestClient } from "../support/client.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { quorate } from "../support/executables.ts";
import type { TestMember } from "../support/member.ts";
import { until } from "../support/until.ts";

const dir = mkdtempSync(join(tmpdir(), "quorate-reload-traffic-"));
const path = (name: string): string => join(dir, name);
const write = (name: string, content: string | Uint8Array): void =>
  writeFileSync(path(name), content, { mode: 0o600 });

const clientCa = makeAuthority("client-ca");
const peerCa = makeAuthority("peer-ca");
const good = makeCertificate({ name: "good", issuer: clientCa, usage: "client" });
const doomed = makeCertificate({ name: "doomed", issuer: clientCa, usage: "client" });
/** Each member has a certificate of its own, as in a cluster of hosts. */
const peers = [0, 1, 2].map((i) => makeLocalCertificate(peerCa, `peer${i}`));
const identityOf = ({ certPem: cert, keyPem: key }: TestCertificate, ca = clientCa.certPem) => ({
  ca,
  cert,
  key,
});

let cluster: TestCluster | undefined;
let members: readonly TestMember[] = [];
/** Writes of the good client that are under way all the time; any failure of one is kept. */
const failures: string[] = [];
let writes = 0;
let isOver = false;
const traffic: Promise<void>[] = [];

function writePair(name: string, { certPem, keyPem }: TestCertificate): void {
  write(`${name}-key.pem`, keyPem);
  write(`${name}.pem`, certPem);
}

/** Changes files; everybody looks at them then, and has taken them or said why not. */
async function changeFiles(says: string, change: () => void): Promise<void> {
  // Before the change: they look every few seconds of their own accord, too.
  const begins = members.map((member) => member.log().length);
  change();
  for (const member of members) member.signal("SIGHUP");
  for (const [i, member] of members.entries())
    await until(`${member.name} says: ${says}`, () => member.log().slice(begins[i]).includes(says));
}

async function metricsOf(member: TestMember): Promise<string> {
  const dispatcher = new Agent({
    connect: { ca: clientCa.certPem, cert: good.certPem, key: good.keyPem },
    allowH2: false,
  });
  try {
    return await (await request(`${member.clientUrl}/metrics`, { dispatcher })).body.text();
  } finally {
    await dispatcher.destroy();
  }
}

const TAKEN = "TLS files have changed; new connections use them";
const KEPT = "cannot use changed TLS files; connections keep the previous ones";
const put = { key: fromLatin1("k"), value: fromLatin1("v") };

/** Calls on a connection that stays, and on a new one each time. */
async function keepWriting(member: TestMember): Promise<void> {
  const standing = new TestClient(member.clientAddress, identityOf(good));
  while (!isOver) {
    try {
      await standing.call(KVService.methods.Put, put);
      const fresh = new TestClient(member.clientAddress, identityOf(good));
      await fresh.call(KVService.methods.Put, put).finally(() => fresh.close());
      writes += 2;
    } catch (error) {
      failures.push(`${member.name}: ${(error as Error).message}`);
    }
    await delay(5);
  }
  standing.close();
}

/** Nothing of the traffic has failed, and it goes on. */
async function goesOn(what: string): Promise<void> {
  const before = writes;
  await until(`writes go on after ${what}`, () => writes > before + 20 || failures.length > 0);
  assert.deepEqual(failures, [], what);
}

before(async () => {
  write("ca.pem", clientCa.certPem);
  write("peer-ca.pem", peerCa.certPem);
  write("clients.crl", makeRevocationList(clientCa, []));
  write("peers.crl", makeRevocationList(peerCa, []));
  writePair("server", makeLocalCertificate(clientCa, "server"));
  for (const i of [0, 1, 2]) writePair(`m${i}`, peers[i]);
  const flagsOf = (name: string): string[] => [
    `--cert-file=${path("server.pem")}`,
    `--key-file=${path("server-key.pem")}`,
    `--trusted-ca-file=${path("ca.pem")}`,
    `--peer-cert-file=${path(`${name}.pem`)}`,
    `--peer-key-file=${path(`${name}-key.pem`)}`,
    `--peer-trusted-ca-file=${path("peer-ca.pem")}`,
    `--client-crl-file=${path("clients.crl")}`,
    `--peer-crl-file=${path("peers.crl")}`,
  ];
  cluster = await startCluster({
    executable: quorate,
    tls: { identity: identityOf(good), flagsOf },
  });
  members = cluster.members;
  for (const member of members) traffic.push(keepWriting(member));
});

after(async () => {
  isOver = true;
  await Promise.all(traffic);
  await cluster?.destroy();
  rmSync(dir, { recursive: true, force: true });
});

test("broken files keep those from before in force, with a line in the log and a count", async () => {
  const noList = makeRevocationList(clientCa, []);
  // A file that is too long is not looked into: the list from before would be no change behind it.
  const oneMore = makeRevocationList(clientCa, [makeAuthority("another")]);
  const half = makeRevocationList(clientCa, [doomed]).subarray(0, 80);
  const broken: readonly (readonly [string, string | Uint8Array, string | Uint8Array])[] = [
    ["ca.pem", "", clientCa.certPem],
    ["ca.pem", clientCa.certPem.slice(0, 200), clientCa.certPem],
    ["server-key.pem", good.keyPem, ""],
    ["clients.crl", good.certPem, noList],
    ["clients.crl", "", noList],
    ["clients.crl", half, noList],
    ["clients.crl", Buffer.alloc(MAX_TLS_FILE_BYTES + 1, 0x30), oneMore],
    ["peers.crl", new Uint8Array([0x30, 0x82, 0xff, 0xff, 1]), makeRevocationList(peerCa, [])],
  ];
  for (const [name, content, whole] of broken) {
    await changeFiles(KEPT, () => write(name, content));
    await goesOn(`a broken ${name}`);
    await changeFiles(TAKEN, () => {
      if (whole !== "") write(name, whole);
      else writePair("server", makeLocalCertificate(clientCa, "server"));
    });
  }
  for (const member of members) {
    const text = await metricsOf(member);
    const value = (port: string) =>
      Number(
        new RegExp(`^quorate_tls_reload_failures_total\\{port="${port}"\\} (\\d+)$`, "m").exec(
          text,
        )?.[1],
      );
    assert.ok(
      value("client") >= 4 && value("peer") >= 1,
      `${member.name}: ${value("client")}, ${value("peer")}`,
    );
  }
});

test("a list that is gone is said once, however often it is looked for; one of 20,000 is taken under traffic", async () => {
  const begins = members.map((member) => member.log().length);
  rmSync(path("clients.crl"));
  for (let look = 0; look < 3; look++) {
    for (const member of members) member.signal("SIGHUP");
    for (const [i, member] of members.entries())
      await until(
        `${member.name} has looked ${look + 1} times`,
        () => member.log().slice(begins[i]).split("reloading on a signal").length > look + 1,
      );
    await goesOn("the list was removed");
  }
  for (const [i, member] of members.entries())
    assert.equal(member.log().slice(begins[i]).split(KEPT).length - 1, 1, member.name);
  const others = Array.from({ length: 20_000 }, (_, i) => ({ ...good, serial: 0x100_0000 + i }));
  for (const revoked of [[], others, []]) {
    write("next.crl", makeRevocationList(clientCa, [...revoked, makeAuthority("another")]));
    await changeFiles(TAKEN, () => renameSync(path("next.crl"), path("clients.crl")));
    await goesOn(`a list of ${revoked.length} was taken`);
  }
});

test("a revoked client is cut off where it is connected, and does not come back; others feel nothing", async () => {
  const standing = members.map(
    (member) => new TestClient(member.clientAddress, identityOf(doomed)),
  );
  for (const client of standing) await client.call(KVService.methods.Put, put);
  // A TLS session of before the revocation.
  const { port } = new URL(members[0].clientUrl);
  let session: Buffer | undefined;
  const shake = (resumed?: Buffer) =>
    new Promise<boolean>((resolve) => {
      const socket = connect({
        host: "127.0.0.1",
        port: Number(port),
        ...identityOf(doomed),
        ALPNProtocols: ["h2"],
        session: resumed,
      });
      socket.on("session", (one) => {
        session = one;
      });
      socket.once("data", () => {
        resolve(true);
        setTimeout(() => socket.destroy(), 20);
      });
      for (const end of ["close", "error"] as const) socket.on(end, () => resolve(false));
    });
  assert.equal(await shake(), true);
  await until(
    "there is a session to resume",
    async () => session !== undefined || !(await shake()),
  );
  assert.equal(await shake(session), true);

  await changeFiles(TAKEN, () => write("clients.crl", makeRevocationList(clientCa, [doomed])));
  for (const [i, client] of standing.entries()) {
    await until(`m${i} has cut it off`, () =>
      client.call(MaintenanceService.methods.Status, {}).then(
        () => false,
        () => true,
      ),
    );
    client.close();
    const begin = members[i].log();
    assert.match(
      begin,
      /rejected connection on client endpoint.*certificate serial [0-9a-f]+ revoked/,
    );
  }
  assert.equal(await shake(), false);
  assert.equal(await shake(session), false, "nor with a session of before");
  await goesOn("a client was revoked");
});

test("a revoked member is cut off from the others, which go on; with a new certificate it is back", async () => {
  const revoked = peers[2];
  const active = async (): Promise<number> => {
    const text = await metricsOf(members[0]);
    return [...text.matchAll(/^etcd_network_active_peers\{.*\} 1$/gm)].length;
  };
  await until("all are connected", async () => (await active()) >= 2);
  const begins = members.map((member) => member.log().length);
  // Writes through m2 wait while it is cut off; this is about the others.
  write("peers.crl", makeRevocationList(peerCa, [revoked]));
  for (const member of members) member.signal("SIGHUP");
  for (const i of [0, 1]) {
    await until(`m${i} has cut m2 off`, () =>
      /rejected connection on peer endpoint.*certificate serial [0-9a-f]+ revoked/.test(
        members[i].log().slice(begins[i]),
      ),
    );
  }
  const client = new TestClient(members[0].clientAddress, identityOf(good));
  await until("the two others write", () =>
    client.call(KVService.methods.Put, put).then(
      () => true,
      () => false,
    ),
  );
  writePair("m2", makeLocalCertificate(peerCa, "peer2 again"));
  members[2].signal("SIGHUP");
  const back = new TestClient(members[2].clientAddress, identityOf(good));
  await until("m2 takes part again", () =>
    back.call(KVService.methods.Put, put).then(
      () => true,
      () => false,
    ),
  );
  client.close();
  back.close();
  failures.length = 0;
  await goesOn("a member was revoked and came back");
});

test("an authority is rotated under traffic: both for a while, then the new one alone", async () => {
  const next = makeAuthority("next-ca");
  await changeFiles(TAKEN, () => {
    write("ca.pem", clientCa.certPem + next.certPem);
    write("peer-ca.pem", peerCa.certPem + next.certPem);
  });
  await goesOn("both authorities are trusted");
  await changeFiles(TAKEN, () => {
    for (const i of [0, 1, 2]) writePair(`m${i}`, makeLocalCertificate(next, `peer${i}`));
  });
  await goesOn("members have certificates of the new authority");
  await changeFiles(TAKEN, () => write("peer-ca.pem", next.certPem));
  await goesOn("members trust the new authority alone");
  // Connections that are open stay, so that the others have to be made.
  await members[2].kill();
  members[2].start();
  const client = new TestClient(members[2].clientAddress, identityOf(good));
  await until("m2 is back", () =>
    client.call(KVService.methods.Put, put).then(
      () => true,
      () => false,
    ),
  );
  client.close();
  failures.length = 0;

  // Clients of the old authority go on where they are connected, and do not come back.
  isOver = true;
  await Promise.all(traffic);
  const standing = new TestClient(members[0].clientAddress, identityOf(good));
  await standing.call(KVService.methods.Put, put);
  await changeFiles(TAKEN, () => write("ca.pem", next.certPem));
  await standing.call(KVService.methods.Put, put);
  standing.close();
  const begin = members[0].log().length;
  const { port } = new URL(members[0].clientUrl);
  const socket = connect({ host: "127.0.0.1", port: Number(port), ...identityOf(good) });
  socket.on("error", () => {});
  await until("m0 refuses the old one", () =>
    /rejected connection on client endpoint.*unknown authority/.test(members[0].log().slice(begin)),
  );
  socket.destroy();
  const renewed = makeCertificate({ name: "good", issuer: next, usage: "client" });
  const fresh = new TestClient(members[0].clientAddress, identityOf(renewed));
  await fresh.call(KVService.methods.Put, put);
  fresh.close();
});
