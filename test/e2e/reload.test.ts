/**
 * SIGHUP to a real member: the log level of its file, its certificates and its log files are read
 * again, nothing else changes.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  makeRevocationList,
  type TestCertificate,
} from "../support/certs.ts";
import { quorate } from "../support/executables.ts";
import { TestMember } from "../support/member.ts";
import { freePorts } from "../support/ports.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { until } from "../support/until.ts";

test("a member takes a log level, certificates and moved log files on SIGHUP, and names what needs a restart", async (t) => {
  const dir = scratchDirectory("quorate-reload-", t);
  const ca = makeAuthority();
  const client = makeLocalCertificate(ca, "client");
  const write = (name: string, text: string) => writeFileSync(join(dir, name), text);
  const writePair = (certificate: TestCertificate) => {
    write("cert.pem", certificate.certPem);
    write("key.pem", certificate.keyPem);
  };
  write("ca.pem", ca.certPem);
  writePair(makeLocalCertificate(ca, "first"));
  const revoke = (...revoked: TestCertificate[]) =>
    writeFileSync(join(dir, "clients.crl"), makeRevocationList(ca, revoked));
  revoke();
  const [clientPort, peerPort] = await freePorts(2);
  const log = join(dir, "member.log");
  const config = (level: string, more = "") => `
name: solo
data-dir: ${join(dir, "data")}
log-level: ${level}
log-outputs: [${log}]
listen-client-urls: https://127.0.0.1:${clientPort}
advertise-client-urls: https://127.0.0.1:${clientPort}
listen-peer-urls: http://127.0.0.1:${peerPort}
initial-advertise-peer-urls: http://127.0.0.1:${peerPort}
initial-cluster: solo=http://127.0.0.1:${peerPort}
client-transport-security:
  cert-file: ${join(dir, "cert.pem")}
  key-file: ${join(dir, "key.pem")}
  trusted-ca-file: ${join(dir, "ca.pem")}
  allowed-hostname: localhost
client-crl-file: ${join(dir, "clients.crl")}
cipher-suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]
tls-max-version: TLS1.2
${more}`;
  write("member.yaml", config("info"));
  const member = new TestMember({
    name: "solo",
    command: quorate.command,
    flags: ["--config-file", join(dir, "member.yaml")],
    env: {},
    clientUrl: `https://127.0.0.1:${clientPort}`,
    peerUrl: `http://127.0.0.1:${peerPort}`,
    dataDir: join(dir, "data"),
    logFile: join(dir, "output.log"),
    identity: { ca: ca.certPem, cert: client.certPem, key: client.keyPem },
  });
  t.after(() => member.kill());
  member.start();
  await member.waitReady();

  const shake = async (who: TestCertificate): Promise<TLSSocket> => {
    const socket = connect({
      host: "127.0.0.1",
      port: clientPort,
      ca: ca.certPem,
      cert: who.certPem,
      key: who.keyPem,
      ALPNProtocols: ["h2"],
    });
    await new Promise((resolve, reject) => {
      socket.once("secureConnect", resolve);
      socket.once("error", reject);
    });
    return socket;
  };
  const commonName = async (): Promise<string> => {
    const socket = await shake(client);
    const name = String(socket.getPeerCertificate().subject.CN);
    socket.destroy();
    return name;
  };
  /** Whether the member says its first frame to a client, or ends the connection. */
  const isServed = async (who: TestCertificate): Promise<boolean> => {
    const socket = await shake(who).catch(() => undefined);
    if (socket === undefined) return false;
    const isServed = await new Promise<boolean>((resolve) => {
      socket.once("data", () => resolve(true));
      for (const end of ["close", "error"] as const) socket.once(end, () => resolve(false));
    });
    socket.destroy();
    return isServed;
  };
  const logged = (text: string, ...files: readonly string[]) =>
    until(`a line with ${text}`, () =>
      [log, ...files].some((path) => existsSync(path) && readFileSync(path, "utf8").includes(text)),
    );
  assert.equal(await commonName(), "first");
  const socket = await shake(client);
  assert.deepEqual(
    [socket.getProtocol(), socket.getCipher().name],
    ["TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"],
  );
  socket.destroy();
  const other = makeLocalCertificate(ca, "other");
  assert.deepEqual([await isServed(client), await isServed(other)], [true, true]);
  const elsewhere = makeCertificate({
    name: "elsewhere",
    issuer: ca,
    dnsNames: ["elsewhere.example"],
  });
  assert.equal(await isServed(elsewhere), false, "--client-cert-allowed-hostname");

  write("member.yaml", config("debug", "snapshot-count: 77\n"));
  writePair(makeLocalCertificate(ca, "second"));
  renameSync(log, `${log}.1`);
  member.signal("SIGHUP");
  await logged('"msg":"the log level has changed","from":"info","to":"debug"');
  await logged(
    '"msg":"changes of the configuration wait for a restart","settings":["snapshotCount"]',
  );
  // It looks at them every few seconds, too, which may have been just before the signal.
  await logged('"msg":"TLS files have changed; new connections use them"', `${log}.1`);
  assert.equal(await commonName(), "second");

  revoke(client);
  member.signal("SIGHUP");
  await until("the revoked client is refused", async () => !(await isServed(client)));
  assert.equal(await isServed(other), true);
  revoke(other);
  member.signal("SIGHUP");
  await until(
    "the other one is refused in its place",
    async () => !(await isServed(other)) && (await isServed(client)),
  );

  write("member.yaml", "log-levle: info\n");
  member.signal("SIGHUP");
  await logged("did you mean");
  assert.equal(await commonName(), "second");
  assert.deepEqual(await member.terminate(), { code: 0, signal: null });
});
