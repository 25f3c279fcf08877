import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import type { Logger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import {
  makeAuthority,
  makeLocalCertificate,
  makeRevocationList,
} from "../../../test/support/certs.ts";
import { TLS_RELOAD_PERIOD_MS, TlsFileSource, tlsSource } from "../node/tls-source.ts";

const CA = makeAuthority();
const OLD = makeLocalCertificate(CA, "old");
const NEW = makeLocalCertificate(CA, "new");

const quiet: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => quiet,
};

function setUp(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), "tls-source-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = (name: string) => join(directory, name);
  const write = (name: string, content: string | Uint8Array) => writeFileSync(path(name), content);
  write("cert.pem", OLD.certPem);
  write("key.pem", OLD.keyPem);
  write("ca.pem", CA.certPem);
  write("crl.der", makeRevocationList(CA, []));
  const lines: string[] = [];
  const logger: Logger = {
    debug: () => {},
    info: (msg) => void lines.push(`info ${msg}`),
    warn: (msg, fields) => void lines.push(`warn ${msg}: ${fields?.["error"]}`),
    error: () => {},
    child: () => logger,
  };
  const clock = new ManualClock();
  const files = {
    certFile: path("cert.pem"),
    keyFile: path("key.pem"),
    trustedCaFile: path("ca.pem"),
    crlFile: path("crl.der"),
  };
  const source = new TlsFileSource(files, { clock, logger });
  t.after(() => source.close());
  let changes = 0;
  source.onChange(() => changes++);
  return { path, write, lines, clock, source, changes: () => changes };
}

describe("TLS options from files", () => {
  it("stay unchanged while the files do", async (t) => {
    const { source, lines, changes } = setUp(t);
    const before = source.current;
    await source.check();
    await source.check();
    assert.equal(source.current, before);
    assert.deepEqual([changes(), lines], [0, []]);
  });

  it("change with a new pair, also one written before the first read", async (t) => {
    const { source, write, lines, changes } = setUp(t);
    write("cert.pem", NEW.certPem);
    write("key.pem", NEW.keyPem);
    await source.check();
    assert.deepEqual([source.current.certPem, source.current.keyPem], [NEW.certPem, NEW.keyPem]);
    assert.deepEqual(
      [changes(), lines],
      [1, ["info TLS files have changed; new connections use them"]],
    );
    write("crl.der", makeRevocationList(CA, [NEW]));
    await source.check();
    assert.equal(source.current.revokedSerials?.size, 1);
    assert.equal(changes(), 2);
  });

  it("are refused while a certificate and its key differ, and accepted afterwards", async (t) => {
    const { source, write, lines, changes } = setUp(t);
    write("cert.pem", NEW.certPem);
    await source.check();
    await source.check();
    assert.equal(source.current.certPem, OLD.certPem);
    assert.equal(lines.length, 1);
    assert.match(
      lines[0],
      /^warn cannot use changed TLS files; connections keep the previous ones: .*key values mismatch/,
    );
    write("key.pem", NEW.keyPem);
    await source.check();
    assert.deepEqual([source.current.certPem, changes()], [NEW.certPem, 1]);
  });

  it("stay when a file is missing or is no revocation list, and the warning names it", async (t) => {
    const { source, path, write, lines } = setUp(t);
    rmSync(path("key.pem"));
    await source.check();
    assert.match(lines.at(-1)!, /no such file or directory.*key\.pem/);
    write("key.pem", OLD.keyPem);
    write("crl.der", "nonsense");
    await source.check();
    assert.match(lines.at(-1)!, /not a certificate revocation list/);
    assert.equal(source.current.keyPem, OLD.keyPem);
    assert.equal(source.current.revokedSerials?.size, 0);
  });

  it("are refused at the start with the name of the bad file", (t) => {
    const { path, write, clock } = setUp(t);
    write("new-key.pem", NEW.keyPem);
    write("words.pem", "-----BEGIN ");
    write("cut.pem", OLD.certPem.slice(0, 300));
    write("damaged.pem", CA.certPem + OLD.certPem.replace("MII", "AAA"));
    const logger = quiet;
    const good = {
      certFile: path("cert.pem"),
      keyFile: path("key.pem"),
      trustedCaFile: path("ca.pem"),
    };
    for (const [bad, expected] of [
      [
        { keyFile: path("new-key.pem") },
        /new-key\.pem is not the key of the certificate in .*\/cert\.pem \(key values mismatch\)/,
      ],
      [{ keyFile: path("cert.pem") }, /cert\.pem contains no private key in PEM/],
      [{ certFile: path("key.pem") }, /key\.pem contains no complete certificate in PEM/],
      [{ certFile: path("cut.pem") }, /cut\.pem contains no complete certificate in PEM/],
      [{ trustedCaFile: path("words.pem") }, /words\.pem contains no complete certificate/],
      [{ trustedCaFile: path("damaged.pem") }, /damaged\.pem: certificate 2 of 2 is damaged/],
      [
        { clientCertFile: path("cert.pem"), clientKeyFile: path("new-key.pem") },
        /new-key\.pem is not the key/,
      ],
      [{ certFile: path("nowhere.pem") }, /no such file or directory.*nowhere\.pem/],
    ] as const) {
      assert.throws(() => new TlsFileSource({ ...good, ...bad }, { clock, logger }), {
        message: expected,
      });
    }
  });

  it("report an expired certificate, and are accepted all the same", (t) => {
    const { path } = setUp(t);
    const said: unknown[] = [];
    const logger: Logger = {
      ...quiet,
      warn: (msg, fields) => void said.push(msg, fields?.["file"]),
      child: () => logger,
    };
    const files = {
      certFile: path("cert.pem"),
      keyFile: path("key.pem"),
      trustedCaFile: path("ca.pem"),
    };
    new TlsFileSource(files, { clock: new ManualClock(Date.now()), logger }).close();
    assert.deepEqual(said, []);
    const years = 20 * 365 * 86_400_000;
    new TlsFileSource(files, { clock: new ManualClock(Date.now() + years), logger }).close();
    assert.deepEqual(
      said.filter((_, i) => i % 2 === 1),
      [files.certFile, files.trustedCaFile],
    );
    assert.match(String(said[0]), /^a certificate has expired: others refuse connections/);
  });

  it("follow a symbolic link that changes its target", async (t) => {
    const { source, path, write } = setUp(t);
    write("new-ca.pem", makeAuthority("second").certPem + CA.certPem);
    symlinkSync(path("new-ca.pem"), path("link"));
    renameSync(path("link"), path("ca.pem"));
    await source.check();
    assert.match(
      source.current.trustedCaPem ?? "",
      /CERTIFICATE[\s\S]*CERTIFICATE[\s\S]*CERTIFICATE/,
    );
  });

  it("are read every few seconds", async (t) => {
    const { source, write, clock } = setUp(t);
    write("cert.pem", NEW.certPem);
    write("key.pem", NEW.keyPem);
    const changed = new Promise<void>((resolve) => source.onChange(resolve));
    clock.advance(TLS_RELOAD_PERIOD_MS);
    await changed;
    assert.equal(source.current.certPem, NEW.certPem);
  });
});

describe("TLS options that do not change", () => {
  it("serve as a source", () => {
    const options = { certPem: OLD.certPem, keyPem: OLD.keyPem };
    const source = tlsSource(options);
    assert.equal(source.current, options);
    source.onChange(() => assert.fail("nothing changes"))();
    assert.equal(tlsSource(source), source);
  });
});

describe("files that are gone", () => {
  it("are said once, and again when they have been there in between", async (t) => {
    const { source, path, write, lines } = setUp(t);
    await source.check();
    rmSync(path("cert.pem"));
    rmSync(path("key.pem"));
    for (let i = 0; i < 20; i++) await source.check();
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.match(lines[0], /^warn cannot use changed TLS files.*ENOENT.*cert\.pem/);
    assert.deepEqual([source.isStale, source.failedReloads], [true, 20]);
    // Another reason is another change.
    write("cert.pem", OLD.certPem);
    for (let i = 0; i < 3; i++) await source.check();
    assert.equal(lines.length, 2, lines.join("\n"));
    assert.match(lines[1], /ENOENT.*key\.pem/);
    write("key.pem", OLD.keyPem);
    await source.check();
    assert.deepEqual([source.isStale, lines.length], [false, 2]);
    rmSync(path("key.pem"));
    for (let i = 0; i < 3; i++) await source.check();
    assert.equal(lines.length, 3, lines.join("\n"));
  });
});

describe("files that are being written, or contain several certificates", () => {
  it("are refused while a bundle or a list is truncated", async (t) => {
    const { source, write, lines, changes } = setUp(t);
    const second = makeAuthority("second");
    const bundle = CA.certPem + second.certPem;
    await source.check();
    for (let cut = CA.certPem.length + 40; cut < bundle.length - 30; cut += 97) {
      write("ca.pem", bundle.slice(0, cut));
      await source.check();
    }
    write("ca.pem", "");
    await source.check();
    const list = Buffer.from(makeRevocationList(CA, [OLD, NEW]));
    write("ca.pem", CA.certPem);
    for (let cut = 0; cut < list.length; cut += 13) {
      write("crl.der", list.subarray(0, cut));
      await source.check();
    }
    write("crl.der", OLD.certPem);
    await source.check();
    assert.deepEqual(
      [changes(), source.current.trustedCaPem, source.current.revokedSerials?.size],
      [0, CA.certPem, 0],
    );
    assert.ok(
      lines.length > 0 &&
        lines.every((line) => line.startsWith("warn cannot use changed TLS files")),
      lines.join("\n"),
    );
    assert.deepEqual([source.reloads, source.failedReloads], [0, lines.length]);
    write("ca.pem", bundle);
    write("crl.der", list);
    await source.check();
    assert.deepEqual(
      [changes(), source.current.trustedCaPem, source.current.revokedSerials?.size],
      [1, bundle, 2],
    );
    assert.equal(source.reloads, 1);
  });

  it("may contain a list per CA, in PEM", async (t) => {
    const { source, write } = setUp(t);
    const second = makeAuthority("second");
    const other = makeLocalCertificate(second, "other");
    const pem = (der: Buffer) =>
      `-----BEGIN X509 CRL-----\n${der.toString("base64")}\n-----END X509 CRL-----\n`;
    write("crl.der", pem(makeRevocationList(CA, [OLD])) + pem(makeRevocationList(second, [other])));
    await source.check();
    const serials = [OLD, other].map(({ serial }) => serial.toString(16).toUpperCase());
    assert.deepEqual([...(source.current.revokedSerials ?? [])].sort(), serials.sort());
  });
});
