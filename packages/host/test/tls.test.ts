import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  makeRevocationList,
} from "../../../test/support/certs.ts";
import { crlNextUpdateMs, revokedSerials } from "../node/crl.ts";
import {
  alternativeNames,
  commonName,
  demandsClientCertificate,
  handshakeFailure,
  readTlsFiles,
  refuseCertificate,
  refuseClientAddress,
} from "../node/tls.ts";

const CA = makeAuthority();
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
  it("is read in DER and PEM, with and without entries", () => {
    const others = Array.from({ length: 50 }, () => makeLocalCertificate(CA, "other"));
    const der = makeRevocationList(CA, [PEER, ...others]);
    const pem = `-----BEGIN X509 CRL-----\n${der.toString("base64")}\n-----END X509 CRL-----\n`;
    const expected = new Set([PEER, ...others].map((one) => one.serial.toString(16).toUpperCase()));
    assert.deepEqual(revokedSerials(der), expected);
    assert.deepEqual(revokedSerials(Buffer.from(pem)), expected);
    assert.deepEqual(revokedSerials(makeRevocationList(CA, [])), new Set());
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

  it("has its nextUpdate in either time format, or none", () => {
    const der = makeRevocationList(CA, [PEER]);
    const dueMs = crlNextUpdateMs(der)!;
    assert.ok(Math.abs(dueMs - Date.now() - 86_400_000) < 60_000, new Date(dueMs).toISOString());
    const list = (...parts: string[]) => {
      const wrap = (tag: string, hex: string) =>
        tag + (hex.length / 2).toString(16).padStart(2, "0") + hex;
      const times = parts.map((text) =>
        wrap(text.length === 13 ? "17" : "18", Buffer.from(text).toString("hex")),
      );
      return Buffer.from(wrap("30", wrap("30", ["3000", "3000", ...times].join(""))), "hex");
    };
    assert.equal(
      crlNextUpdateMs(list("260102030405Z", "270102030405Z")),
      Date.UTC(2027, 0, 2, 3, 4, 5),
    );
    assert.equal(
      crlNextUpdateMs(list("20260102030405Z", "20510102030405Z")),
      Date.UTC(2051, 0, 2, 3, 4, 5),
    );
    assert.equal(
      crlNextUpdateMs(list("260102030405Z", "990102030405Z")),
      Date.UTC(1999, 0, 2, 3, 4, 5),
    );
    assert.equal(crlNextUpdateMs(list("260102030405Z")), undefined);
    assert.throws(
      () => crlNextUpdateMs(list("260102030405Z", "2601020304xxZ")),
      /not a certificate revocation list/,
    );
  });

  it("is refused when it is truncated or something else", () => {
    const der = makeRevocationList(CA, [PEER]);
    assert.throws(() => revokedSerials(der.subarray(0, 40)), /not a certificate revocation list/);
    assert.throws(() => revokedSerials(Buffer.from("hello")), /not a certificate revocation list/);
    assert.throws(() => revokedSerials(Buffer.alloc(0)), /not a certificate revocation list/);
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
  it("are read, and one that is missing is named", (t) => {
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
    const options = readTlsFiles(files);
    assert.equal(options.certPem, PEER.certPem);
    assert.equal(options.trustedCaPem, CA.certPem);
    assert.equal(options.clientCertAuth, true);
    assert.equal(options.clientCertPem, undefined);
    assert.equal(options.revokedSerials?.size, 1);
    assert.throws(
      () => readTlsFiles({ ...files, keyFile: join(directory, "none.pem") }),
      /none\.pem/,
    );
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
