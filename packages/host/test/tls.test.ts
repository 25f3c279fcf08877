import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { Pauses, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  makeRevocationList,
} from "../../../test/support/certs.ts";
import { readRevocations } from "../node/crl.ts";
import {
  alternativeNames,
  commonName,
  demandsClientCertificate,
  handshakeFailure,
  refuseCertificate,
  refuseClientAddress,
} from "../node/tls.ts";
import { followTlsFiles } from "../node/tls-source.ts";

const CA = makeAuthority();
const pauses = new Pauses(new ManualClock().turns);
const PEER = makeLocalCertificate(CA, 'a, "b"\nc');
const BASE = { certPem: PEER.certPem, keyPem: PEER.keyPem };

function parsed(certificate: { certPem: string }): X509Certificate {
  return new X509Certificate(certificate.certPem);
}

describe("names in a certificate", () => {
  it("are returned unchanged, also unusual ones", () => {
    assert.equal(commonName(parsed(PEER)), 'a, "b"\nc');
    assert.equal(commonName(parsed(makeCertificate({ name: "" }))), "");
    assert.deepEqual(alternativeNames(parsed(PEER)), {
      dnsNames: ["localhost"],
      ipAddresses: ["127.0.0.1", "0:0:0:0:0:0:0:1"],
    });
    assert.deepEqual(alternativeNames(parsed(CA)), { dnsNames: [], ipAddresses: [] });
  });
});

describe("a certificate with a valid chain", () => {
  const refused = "client certificate authentication failed";
  it("must match an allowed common name exactly", () => {
    assert.equal(
      refuseCertificate({ ...BASE, allowedCommonNames: ["x", 'a, "b"\nc'] }, parsed(PEER), true),
      undefined,
    );
    assert.equal(
      refuseCertificate({ ...BASE, allowedCommonNames: ["a"] }, parsed(PEER), true),
      refused,
    );
    assert.equal(
      refuseCertificate({ ...BASE, allowedCommonNames: [] }, parsed(PEER), true),
      undefined,
    );
  });

  it("must match an allowed host by its alternative names only", () => {
    const wild = parsed(
      makeCertificate({ name: "named.example", issuer: CA, dnsNames: ["*.peers.example"] }),
    );
    assert.equal(
      refuseCertificate(
        { ...BASE, allowedHostnames: ["x.example", "one.peers.example"] },
        wild,
        true,
      ),
      undefined,
    );
    assert.equal(
      refuseCertificate({ ...BASE, allowedHostnames: ["named.example"] }, wild, true),
      refused,
    );
    assert.equal(
      refuseCertificate({ ...BASE, allowedHostnames: ["10.0.0.1"] }, parsed(PEER), true),
      refused,
    );
    assert.equal(
      refuseCertificate({ ...BASE, allowedHostnames: ["127.0.0.1"] }, parsed(PEER), true),
      undefined,
    );
  });

  it("must be present where it is required", () => {
    assert.equal(
      refuseCertificate(BASE, undefined, true),
      "tls: client didn't provide a certificate",
    );
    assert.equal(refuseCertificate(BASE, undefined, false), undefined);
    assert.ok(demandsClientCertificate({ ...BASE, trustedCaPem: CA.certPem }));
    assert.ok(demandsClientCertificate({ ...BASE, clientCertAuth: true }));
    assert.ok(!demandsClientCertificate(BASE));
  });
});

describe("a revocation list", () => {
  it("is read in DER and PEM, with and without entries", async () => {
    const others = Array.from({ length: 50 }, () => makeLocalCertificate(CA, "other"));
    const der = makeRevocationList(CA, [PEER, ...others]);
    const pem = `-----BEGIN X509 CRL-----\n${der.toString("base64")}\n-----END X509 CRL-----\n`;
    const expected = new Set([PEER, ...others].map((one) => one.serial.toString(16).toUpperCase()));
    assert.deepEqual((await readRevocations(der, pauses)).serials, expected);
    assert.deepEqual((await readRevocations(Buffer.from(pem), pauses)).serials, expected);
    assert.deepEqual(
      (await readRevocations(makeRevocationList(CA, []), pauses)).serials,
      new Set(),
    );
    const reason = `transport: certificate serial ${PEER.serial.toString(16)} revoked`;
    assert.equal(
      refuseCertificate({ ...BASE, revokedSerials: expected }, parsed(PEER), true),
      reason,
    );
    assert.equal(
      refuseCertificate({ ...BASE, revokedSerials: new Set(["FFFF"]) }, parsed(PEER), true),
      undefined,
    );
  });

  it("has its nextUpdate in either time format, or none", async () => {
    const der = makeRevocationList(CA, [PEER]);
    const dueMs = (await readRevocations(der, pauses)).nextUpdateMs!;
    assert.ok(Math.abs(dueMs - Date.now() - 86_400_000) < 60_000, new Date(dueMs).toISOString());
    const list = (...parts: string[]) => {
      const wrap = (tag: string, hex: string) =>
        tag + (hex.length / 2).toString(16).padStart(2, "0") + hex;
      const times = parts.map((text) =>
        wrap(text.length === 13 ? "17" : "18", Buffer.from(text).toString("hex")),
      );
      return Buffer.from(wrap("30", wrap("30", ["3000", "3000", ...times].join(""))), "hex");
    };
    const due = async (...times: string[]) =>
      (await readRevocations(list(...times), pauses)).nextUpdateMs;
    assert.equal(await due("260102030405Z", "270102030405Z"), Date.UTC(2027, 0, 2, 3, 4, 5));
    assert.equal(await due("20260102030405Z", "20510102030405Z"), Date.UTC(2051, 0, 2, 3, 4, 5));
    assert.equal(await due("260102030405Z", "990102030405Z"), Date.UTC(1999, 0, 2, 3, 4, 5));
    assert.equal(await due("260102030405Z"), undefined);
    await assert.rejects(
      due("260102030405Z", "2601020304xxZ"),
      /not a certificate revocation list/,
    );
  });

  it("is refused when it is truncated or something else", async () => {
    const der = makeRevocationList(CA, [PEER]);
    await assert.rejects(
      readRevocations(der.subarray(0, 40), pauses),
      /not a certificate revocation list/,
    );
    await assert.rejects(
      readRevocations(Buffer.from("hello"), pauses),
      /not a certificate revocation list/,
    );
    await assert.rejects(
      readRevocations(Buffer.alloc(0), pauses),
      /not a certificate revocation list/,
    );
  });
});

describe("the address a peer dials from", () => {
  it("must match its certificate's addresses and names, if there are any", async () => {
    const named = (dnsNames: string[], ipAddresses: string[]) =>
      parsed(makeCertificate({ name: "x", issuer: CA, dnsNames, ipAddresses }));
    assert.equal(await refuseClientAddress(named([], []), "127.0.0.1"), undefined);
    assert.equal(await refuseClientAddress(named([], ["127.0.0.1"]), "127.0.0.1"), undefined);
    assert.equal(
      await refuseClientAddress(named([], ["10.0.0.1"]), "127.0.0.1"),
      "x509: certificate is valid for 10.0.0.1, not 127.0.0.1",
    );
    assert.equal(
      await refuseClientAddress(named(["localhost"], ["10.0.0.1"]), "127.0.0.1"),
      undefined,
    );
  });
});

describe("TLS files", () => {
  it("become options", async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "tls-"));
    t.after(() => rmSync(directory, { recursive: true }));
    const write = (name: string, content: string | Uint8Array) => {
      writeFileSync(join(directory, name), content);
      return join(directory, name);
    };
    const files = {
      certFile: write("cert.pem", PEER.certPem),
      keyFile: write("key.pem", PEER.keyPem),
      trustedCaFile: write("ca.pem", CA.certPem),
      crlFile: write("crl.der", makeRevocationList(CA, [PEER])),
      clientCertAuth: true,
    };
    const source = await followTlsFiles(files, { clock: new ManualClock(), logger: silentLogger });
    source.close();
    const options = source.current;
    assert.equal(options.certPem, PEER.certPem);
    assert.equal(options.trustedCaPem, CA.certPem);
    assert.equal(options.clientCertAuth, true);
    assert.equal(options.clientCertPem, undefined);
    assert.equal(options.revokedSerials?.size, 1);
  });
});

describe("a failed handshake", () => {
  it("has Go's text, else the first line of Node's", () => {
    const error = (code: string, message = "") => Object.assign(new Error(message), { code });
    const socket = (authorizationError: string) => ({ authorizationError }) as never;
    const unknown =
      "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert.equal(
      handshakeFailure(error("ECONNRESET"), socket("DEPTH_ZERO_SELF_SIGNED_CERT")),
      unknown,
    );
    assert.equal(handshakeFailure(error("SELF_SIGNED_CERT_IN_CHAIN", "x")), unknown);
    assert.equal(handshakeFailure(error("ECONNRESET")), "EOF");
    assert.equal(
      handshakeFailure(error("ECONNRESET"), socket("CRL_HAS_EXPIRED")),
      "CRL_HAS_EXPIRED",
    );
    assert.equal(handshakeFailure(error("ERR_X", "one\ntwo")), "one");
    const mismatch = error("ERR_TLS_CERT_ALTNAME_INVALID", "does not match");
    assert.equal(
      handshakeFailure(mismatch, socket("ERR_TLS_CERT_ALTNAME_INVALID")),
      "does not match",
    );
  });
});
