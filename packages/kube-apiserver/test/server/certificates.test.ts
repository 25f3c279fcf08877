import "reflect-metadata";
import assert from "node:assert/strict";
import { createPrivateKey, KeyObject, type webcrypto, X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as x509 from "@peculiar/x509";
import { type CertificateSubject, issueCertificate, makeAuthority } from "@quorate/host/node";
import { OwnCertificateError, ownCertificates } from "../../node/certificates.ts";

const root = mkdtempSync(join(tmpdir(), "quorate-certificates-"));
after(() => rmSync(root, { recursive: true, force: true }));
const RSA = {
  name: "RSASSA-PKCS1-v1_5",
  hash: "SHA-256",
  modulusLength: 2048,
  publicExponent: new Uint8Array([1, 0, 1]),
};
const NOW_MS = Date.UTC(2026, 0, 1);

test("certificates are made once and kept; half of an authority or a damaged file is refused", async () => {
  const dir = join(root, "pki");
  const made = await ownCertificates(dir, ["127.0.0.1"], NOW_MS);
  assert.deepEqual(await ownCertificates(dir, ["127.0.0.1"], NOW_MS), made);
  const wider = await ownCertificates(dir, ["127.0.0.1", "db.example"], NOW_MS);
  assert.equal(wider.ca.certPem, made.ca.certPem);
  assert.notEqual(wider.server.certPem, made.server.certPem);

  for (const name of ["ca.crt", "ca.key", "apiserver.key", "service-account.key"]) {
    const path = join(dir, name);
    const before = readFileSync(path);
    writeFileSync(path, "-----BEGIN NOTHING-----\n");
    await assert.rejects(ownCertificates(dir, ["127.0.0.1"], NOW_MS), (error) => {
      assert.ok(error instanceof OwnCertificateError);
      assert.ok(error.message.startsWith(`${path}: not usable`), error.message);
      return true;
    });
    writeFileSync(path, before);
  }
  rmSync(join(dir, "ca.key"));
  await assert.rejects(ownCertificates(dir, ["127.0.0.1"], NOW_MS), /ca\.key: the file is missing/);
  assert.equal(readFileSync(join(dir, "ca.crt"), "utf8"), made.ca.certPem);
});

const VALIDITY = { fromMs: NOW_MS, untilMs: Date.UTC(2051, 1, 3, 4, 5, 6) };
const SERVER: CertificateSubject = {
  commonName: "höst",
  organizations: ["one", "two"],
  usage: "server",
  hosts: ["127.0.0.1", "db.example", "::1", "fe80::1:2", "::ffff:10.1.2.3", "2001:db8::"],
};

test("certificates are what OpenSSL and another library read them as", async () => {
  const ca = await makeAuthority("an authority", VALIDITY);
  const made = await issueCertificate(ca, SERVER, VALIDITY);
  const [authority, leaf] = [ca, made].map(({ certPem }) => new X509Certificate(certPem));
  assert.ok(authority.ca && !leaf.ca);
  assert.ok(leaf.checkIssued(authority) && leaf.verify(authority.publicKey));
  assert.ok(authority.verify(authority.publicKey));
  assert.ok(leaf.checkPrivateKey(createPrivateKey(made.keyPem)));
  assert.equal(leaf.subject, "O=one\nO=two\nCN=höst");
  assert.equal(leaf.issuer, "CN=an authority");
  assert.equal(leaf.validFromDate.getTime(), VALIDITY.fromMs);
  assert.equal(leaf.validToDate.getTime(), VALIDITY.untilMs);
  for (const host of SERVER.hosts)
    assert.ok(host === "db.example" ? leaf.checkHost(host) : leaf.checkIP(host), host);
  assert.equal(leaf.checkIP("::2"), undefined);
  const read = new x509.X509Certificate(made.certPem);
  assert.equal(read.getExtension(x509.KeyUsagesExtension)?.usages, 5);
  const { usages = [] } = read.getExtension(x509.ExtendedKeyUsageExtension) ?? {};
  assert.deepEqual([...usages], [x509.ExtendedKeyUsage.serverAuth]);
  const keyId = new x509.X509Certificate(ca.certPem).getExtension(
    x509.SubjectKeyIdentifierExtension,
  )?.keyId;
  assert.equal(read.getExtension(x509.AuthorityKeyIdentifierExtension)?.keyId, keyId);
});

test("an authority of another program issues certificates: RSA, any form of its name", async () => {
  const keys = await crypto.subtle.generateKey(RSA, true, ["sign", "verify"]);
  const pair = keys as webcrypto.CryptoKeyPair;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=elsewhere, C=AT, O=Ltd",
    keys: pair,
    signingAlgorithm: RSA,
    extensions: [new x509.BasicConstraintsExtension(true)],
  });
  const keyPem = KeyObject.from(pair.privateKey).export({ type: "pkcs8", format: "pem" });
  const ca = { certPem: certificate.toString("pem"), keyPem: keyPem.toString() };
  const { certPem } = await issueCertificate(ca, SERVER, VALIDITY);
  const leaf = new X509Certificate(certPem);
  const authority = new X509Certificate(ca.certPem);
  assert.ok(leaf.checkIssued(authority) && leaf.verify(authority.publicKey));
});
