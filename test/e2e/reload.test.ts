/** SIGHUP to a real member: the log level of its file, its certificates and its log files are taken anew, nothing else changes. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { makeAuthority, makeLocalCertificate, type TestCertificate } from "../support/certs.ts";
import { quorate } from "../support/executables.ts";
import { TestMember } from "../support/member.ts";
import { freePorts } from "../support/ports.ts";
import { until } from "../support/until.ts";

test("a member takes a log level, certificates and moved log files on SIGHUP, and names what needs a restart", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-reload-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const ca = makeAuthority();
  const client = makeLocalCertificate(ca, "client");
  const write = (name: string, text: string) => writeFileSync(join(dir, name), text);
  const writePair = (certificate: TestCertificate) => {
    write("cert.pem", certificate.certPem);
    write("key.pem", certificate.keyPem);
  };
  write("ca.pem", ca.certPem);
  writePair(makeLocalCertificate(ca, "first"));
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

  const commonName = async (): Promise<string> => {
    const socket = connect({ host: "127.0.0.1", port: clientPort, ca: ca.certPem, cert: client.certPem, key: client.keyPem });
    await new Promise((resolve, reject) => {
      socket.once("secureConnect", resolve);
      socket.once("error", reject);
    });
    const name = String(socket.getPeerCertificate().subject.CN);
    socket.destroy();
    return name;
  };
  const logged = (text: string) => until(`a line with ${text}`, () => existsSync(log) && readFileSync(log, "utf8").includes(text));
  assert.equal(await commonName(), "first");

  write("member.yaml", config("debug", "snapshot-count: 77\n"));
  writePair(makeLocalCertificate(ca, "second"));
  renameSync(log, `${log}.1`);
  member.signal("SIGHUP");
  await logged('"msg":"the log level has changed","from":"info","to":"debug"');
  await logged('"msg":"changes of the configuration wait for a restart","settings":["snapshotCount"]');
  await logged('"msg":"TLS files have changed; new connections use them"');
  assert.equal(await commonName(), "second");

  write("member.yaml", "log-levle: info\n");
  member.signal("SIGHUP");
  await logged("did you mean");
  assert.equal(await commonName(), "second");
  assert.deepEqual(await member.terminate(), { code: 0, signal: null });
});
