import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as tls from "node:tls";
import {
  certificateTrouble,
  createAuthority,
  localHosts,
  writeCertificates,
} from "../../scripts/certs.ts";

const dir = mkdtempSync(join(tmpdir(), "quorate-certs-"));
after(() => rmSync(dir, { recursive: true }));

test("the directory holds the eight files with the right modes, and is usable until a certificate is about to expire", async () => {
  const files = await writeCertificates(dir, { hosts: localHosts, client: "someone" });
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  assert.equal(Object.keys(files).length, 8);
  for (const [name, path] of Object.entries(files)) {
    assert.equal(statSync(path).mode & 0o777, name.endsWith("Key") ? 0o600 : 0o644, path);
  }
  const server = new X509Certificate(readFileSync(files.server));
  const ca = new X509Certificate(readFileSync(files.ca));
  assert.ok(ca.ca);
  assert.ok(server.verify(ca.publicKey) && !server.ca);
  assert.equal(server.checkHost("localhost"), "localhost");
  assert.equal(server.checkIP("127.0.0.1"), "127.0.0.1");
  assert.equal(server.checkIP("::1"), "::1");
  const client = new X509Certificate(readFileSync(files.client));
  assert.match(client.subject, /CN=someone/);
  // Members have an authority of their own, and only they have a certificate of it.
  const peer = new X509Certificate(readFileSync(files.peer));
  const peerCa = new X509Certificate(readFileSync(files.peerCa));
  const usages = ({ keyUsage }: X509Certificate) =>
    keyUsage?.map((oid) => ({ "1.3.6.1.5.5.7.3.1": "server" })[oid] ?? "client");
  assert.deepEqual(
    [usages(server), usages(peer), usages(client)],
    [["server", "client"], ["server", "client"], ["client"]],
  );
  assert.deepEqual(
    [server, peer, client].map((one) => one.verify(peerCa.publicKey)),
    [false, true, false],
  );
  assert.deepEqual(
    [server, peer, client].map((one) => one.verify(ca.publicKey)),
    [true, false, true],
  );

  assert.equal(certificateTrouble(dir), undefined);
  assert.match(certificateTrouble(dir, 100_000)!, /expires at/);
  writeFileSync(files.peer, "rubbish");
  assert.match(certificateTrouble(dir)!, /peer\.pem is not a certificate/);
  rmSync(files.ca);
  assert.match(certificateTrouble(dir)!, /ca\.pem is missing/);
});

test("a server that demands a client certificate takes one of its authority and refuses one of another", async () => {
  const authority = await createAuthority("a");
  const outsider = await createAuthority("b");
  const server = await authority.issue({
    commonName: "server",
    hosts: ["127.0.0.1"],
    usage: "both",
  });
  const listener = tls.createServer({
    cert: server.certPem,
    key: server.keyPem,
    ca: authority.caPem,
    requestCert: true,
    rejectUnauthorized: true,
  });
  listener.on("secureConnection", (socket) => socket.end("hello"));
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as { port: number };
  const call = async (from: typeof authority): Promise<string> => {
    const client = await from.issue({ commonName: "client", hosts: [], usage: "client" });
    return new Promise((resolve, reject) => {
      const socket = tls.connect({
        host: "127.0.0.1",
        port,
        ca: authority.caPem,
        cert: client.certPem,
        key: client.keyPem,
      });
      socket.on("data", (data) => resolve(data.toString()));
      socket.on("error", reject);
      // Node hangs up on a client that it does not trust, with no word why.
      socket.on("close", () => reject(new Error("refused")));
    });
  };
  try {
    assert.equal(await call(authority), "hello");
    await assert.rejects(call(outsider));
  } finally {
    listener.close();
  }
});
