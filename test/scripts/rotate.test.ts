/**
 * Certificates are exchanged under a running cluster of three members: every call succeeds, and at
 * the end the old ones are refused.
 * @slow
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fromLatin1, KVService } from "@quorate/proto";
import { nextStep, rotate } from "../../scripts/certs/rotate.ts";
import {
  addClient,
  addedClientFiles,
  certificateFiles,
  certificatesOf,
  certificateTrouble,
  leafNamesOf,
  maxAddedClients,
  writeCertificates,
} from "../../scripts/certs.ts";
import { TestClient } from "../support/client.ts";
import { startCluster } from "../support/cluster.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { until } from "../support/until.ts";

const scratch = scratchDirectory("quorate-rotate-");

const tool = join(import.meta.dirname, "../../scripts/certs.sh");

test("three steps, without a failed call, and then the old authority is not trusted", {
  timeout: 600_000,
}, async () => {
  const cluster = await startCluster({ size: 3, tls: true });
  try {
    const files = cluster.certs!;
    const dir = join(files.ca, "..");
    const read = (path: string): string => readFileSync(path, "utf8");
    const identityNow = () => ({
      ca: read(files.ca),
      cert: read(files.client),
      key: read(files.clientKey),
    });
    const before = identityNow();
    const put = { key: fromLatin1("k"), value: fromLatin1("v") };
    // One connection that stays, and a new one for each round and member, as programs have that
    // start meanwhile.
    const standing = new TestClient(cluster.members[0].clientAddress, before);
    const round = async (): Promise<void> => {
      await standing.call(KVService.methods.Put, put);
      for (const member of cluster.members) {
        const fresh = new TestClient(member.clientAddress, identityNow());
        await fresh.call(KVService.methods.Put, put);
        fresh.close();
      }
    };
    // A member has read a change when it says so; SIGHUP makes it look now.
    const everybodyReads = async (change: () => Promise<void>): Promise<void> => {
      const begins = cluster.members.map((member) => member.log().length);
      await change();
      for (const [i, member] of cluster.members.entries()) {
        // Each port of a member follows its files.
        const ports = (): number => {
          const lines = member.log().slice(begins[i]).split("\n");
          return new Set(
            lines.flatMap(
              (line) => /TLS files have changed.*"files":(\[[^\]]*\])/.exec(line)?.[1] ?? [],
            ),
          ).size;
        };
        member.signal("SIGHUP");
        await until(
          `${member.name} reads the certificates of both ports again`,
          () => ports() === 2,
        );
        await round();
      }
    };

    await round();
    assert.equal(nextStep(dir), "trust");
    await assert.rejects(
      rotate(dir, "issue"),
      /the next step of the rotation in .* is "trust", not "issue"/,
    );
    await everybodyReads(() => rotate(dir, "trust"));
    const trusted = () =>
      [files.ca, files.peerCa].map((path) => read(path).split("BEGIN CERTIFICATE").length - 1);
    assert.deepEqual(trusted(), [2, 2]);
    assert.equal(statSync(join(dir, "next")).mode & 0o777, 0o700);

    assert.equal(nextStep(dir), "issue");
    await everybodyReads(() => rotate(dir, "issue"));
    assert.notEqual(read(files.server), before.cert);

    assert.equal(nextStep(dir), "drop");
    await everybodyReads(() => rotate(dir, "drop"));
    assert.deepEqual(trusted(), [1, 1]);
    assert.ok(!existsSync(join(dir, "next")));
    assert.equal(nextStep(dir), "trust");
    standing.close();

    const old = new TestClient(cluster.members[0].clientAddress, {
      ...before,
      ca: read(files.ca),
    });
    await assert.rejects(
      old.call(KVService.methods.Put, put),
      "a certificate of the old authority is refused",
    );
    old.close();
    // Members find each other by the new ones: one that restarts takes part again.
    await cluster.members[1].kill();
    cluster.members[1].start();
    const again = new TestClient(cluster.members[1].clientAddress, identityNow());
    await until("a member that starts on the new certificates serves", () =>
      again.call(KVService.methods.Put, put).then(
        () => true,
        () => false,
      ),
    );
    again.close();
  } finally {
    await cluster.destroy();
  }
});

test("the tool makes, checks and rotates a directory, keeps names, goes on with what was cut short, and reports mistakes", async () => {
  const dir = join(scratch, "pki");
  const call = (...args: string[]) => spawnSync(tool, args, { encoding: "utf8", cwd: scratch });
  assert.equal(
    call("create", "--dir", "pki", "--hosts", "db.example,10.0.0.1", "--client", "alice").status,
    0,
  );
  assert.deepEqual(leafNamesOf(dir), {
    hosts: ["db.example", "10.0.0.1"],
    client: "alice",
    added: [],
  });
  assert.match(
    call("create", "--dir", "pki").stderr,
    /ca\.pem is there already; "rotate" exchanges/,
  );
  assert.equal(call("check", "--dir", "pki").status, 0);
  const tooLong = call("check", "--dir", "pki", "--days", "10000");
  assert.equal(tooLong.status, 1);
  assert.match(tooLong.stdout, /expires at/);

  const files = certificateFiles(dir);
  const old = readFileSync(files.ca, "utf8");
  assert.equal(call("rotate", "--dir", "pki", "--step", "trust").status, 0);
  assert.match(
    call("rotate", "--dir", "pki", "--step", "drop").stderr,
    /the next step .* is "issue", not "drop"/,
  );
  const all = call("rotate", "--dir", "pki", "--wait", "0");
  assert.equal(all.status, 0, all.stderr);
  assert.match(
    all.stdout,
    /^issue: pki has the new certificates\nwaiting 0 s [^\n]+\ndrop: pki trusts the new authorities alone\n$/,
  );
  const ca = new X509Certificate(readFileSync(files.ca));
  const peerCa = new X509Certificate(readFileSync(files.peerCa));
  assert.notEqual(readFileSync(files.ca, "utf8"), old);
  for (const path of [files.server, files.client])
    assert.ok(new X509Certificate(readFileSync(path)).checkIssued(ca), path);
  assert.ok(new X509Certificate(readFileSync(files.peer)).checkIssued(peerCa));
  assert.equal(statSync(files.serverKey).mode & 0o777, 0o600);
  assert.deepEqual(leafNamesOf(dir), {
    hosts: ["db.example", "10.0.0.1"],
    client: "alice",
    added: [],
  });

  // A directory of an earlier release has one authority for all.
  rmSync(files.peerCa);
  assert.match(
    call("rotate", "--dir", "pki").stderr,
    /peer-ca\.pem is missing: .* copy ca\.pem to peer-ca\.pem and name that with --peer-/,
  );
  assert.match(call("rotate", "--dir", "nowhere").stderr, /nowhere\/ca\.pem is missing/);
  assert.match(call("rotate").stderr, /--dir is missing/);
  assert.match(
    call("turn", "--dir", "pki").stderr,
    /the command is "turn"; it should be create, client NAME, check or rotate/,
  );
  assert.match(call("--help").stdout, /rotate {4}replaces all certificates/);
});

test("a rotation that was cut short while it wrote the new files starts again", async () => {
  const dir = join(scratch, "cut");
  const files = await writeCertificates(dir);
  const next = await writeCertificates(join(dir, "next"));
  rmSync(next.ca);
  writeFileSync(next.server, "half");
  await rotate(dir, "trust");
  assert.ok(new X509Certificate(readFileSync(next.server)).subject.includes("server"));
  for (const path of [files.ca, files.peerCa])
    assert.equal(readFileSync(path, "utf8").split("BEGIN CERTIFICATE").length - 1, 2);
});

test("a client that is added has an authority of its own, which members trust without a restart, and the next rotation issues it again", {
  timeout: 600_000,
}, async () => {
  const cluster = await startCluster({ size: 1, tls: true });
  try {
    const [member] = cluster.members;
    const files = cluster.certs!;
    const dir = join(files.ca, "..");
    const call = (...args: string[]) =>
      spawnSync(tool, [...args, "--dir", dir], { encoding: "utf8" });
    const read = (path: string): string => readFileSync(path, "utf8");
    const issuersBefore = read(files.ca).split("BEGIN CERTIFICATE").length - 1;
    const running = member.pid;
    assert.equal(call("client", "billing").status, 0);
    const added = call("client", "proxy", "--client", "");
    assert.equal(
      added.stdout,
      `made ${dir}/clients/proxy.pem and its key; copy ${files.ca} to all hosts\n`,
    );

    const clients = ["billing", "proxy"].map((name) => addedClientFiles(dir, name));
    const authorities = certificatesOf(files.ca).map((pem) => new X509Certificate(pem));
    assert.equal(authorities.length, issuersBefore + 2);
    const certificates = clients.map(({ cert }) => new X509Certificate(read(cert)));
    // Undefined: no subject at all, so that a member takes it for no user.
    assert.deepEqual(
      certificates.map(({ subject }) => subject),
      ["CN=billing", undefined],
    );
    for (const certificate of certificates)
      assert.equal(authorities.filter((one) => certificate.checkIssued(one)).length, 1);
    assert.deepEqual(
      clients.map(({ key }) => statSync(key).mode & 0o777),
      [0o600, 0o600],
    );
    assert.equal(statSync(join(dir, "clients")).mode & 0o777, 0o700);

    const puts = async (): Promise<number> => {
      let served = 0;
      for (const { cert, key } of clients) {
        const client = new TestClient(member.clientAddress, {
          ca: read(files.ca),
          cert: read(cert),
          key: read(key),
        });
        served += await client
          .call(KVService.methods.Put, { key: fromLatin1("k"), value: fromLatin1("v") })
          .then(
            () => 1,
            () => 0,
          );
        client.close();
      }
      return served;
    };
    await until("the member has read ca.pem again, by itself", async () => (await puts()) === 2);
    assert.equal(member.pid, running);

    const old = certificates.map(({ fingerprint }) => fingerprint);
    assert.equal(call("rotate", "--step", "trust").status, 0);
    assert.match(call("client", "late").stderr, /a rotation of .* is under way; finish it first/);
    for (const step of ["issue", "drop"]) assert.equal(call("rotate", "--step", step).status, 0);
    assert.equal(certificatesOf(files.ca).length, 3);
    for (const [i, { cert }] of clients.entries()) {
      const certificate = new X509Certificate(read(cert));
      assert.notEqual(certificate.fingerprint, old[i]);
      assert.equal(certificate.subject, certificates[i].subject);
    }
    await until("the new certificates serve", async () => (await puts()) === 2);

    // A client whose files are gone is not issued again, and its authority goes.
    rmSync(clients[0].cert);
    rmSync(clients[0].key);
    assert.equal(call("rotate", "--wait", "0").status, 0);
    assert.equal(certificatesOf(files.ca).length, 2);
    assert.deepEqual(leafNamesOf(dir).added, [{ name: "proxy", commonName: "" }]);
  } finally {
    await cluster.destroy();
  }
});

test("the tool refuses names of added clients that are no file names, that are there, or that are too many", async () => {
  const dir = join(scratch, "added");
  await writeCertificates(dir);
  const call = (...args: string[]) =>
    spawnSync(tool, [...args, "--dir", "added"], { encoding: "utf8", cwd: scratch });
  for (const name of ["../up", "a/b", ".hidden", "client-key", "", "a".repeat(65), "a\n"]) {
    const { status, stderr } = call("client", name);
    assert.equal(status, 2, name);
    assert.ok(
      stderr.startsWith(`the client's name is ${JSON.stringify(name)}; it should `),
      stderr,
    );
  }
  assert.match(call("client").stderr, /the client's name is ""; it should have/);
  assert.match(call("client", "x", "--hosts", "a").stderr, /--hosts is for create and rotate/);
  assert.match(
    call("client", "x", "--client", "n".repeat(65)).stderr,
    /--client has 65 characters; a common name has at most 64/,
  );
  assert.equal(call("client", "once").status, 0);
  assert.match(call("client", "once").stderr, /clients\/once\.pem is there already/);
  for (let i = 1; i < maxAddedClients; i++)
    await addClient(dir, { name: `c${i}`, commonName: `c${i}` });
  assert.match(call("client", "more").stderr, /has 64 added clients, which is the most/);
  assert.equal(certificateTrouble(dir), undefined);
  // One that is not the first of its file is looked at too.
  rmSync(addedClientFiles(dir, "c7").key);
  assert.match(call("check").stdout, /clients\/c7-key\.pem is missing/);
});
