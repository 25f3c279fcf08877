import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { type Logger, Turns } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import {
  makeAuthority,
  makeLocalCertificate,
  makeRevocationList,
} from "../../../test/support/certs.ts";
import { FILE_RELOAD_PERIOD_MS } from "../node/file-source.ts";
import { MAX_FILE_CERTIFICATES } from "../node/tls-check.ts";
import { followTlsFiles, MAX_TLS_FILE_BYTES, tlsSource } from "../node/tls-source.ts";

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

async function setUp(t: TestContext, clock = new ManualClock()) {
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
  const files = {
    certFile: path("cert.pem"),
    keyFile: path("key.pem"),
    trustedCaFile: path("ca.pem"),
    crlFile: path("crl.der"),
  };
  const source = await followTlsFiles(files, { clock, logger });
  t.after(() => source.close());
  let changes = 0;
  source.onChange(() => changes++);
  return { path, write, lines, clock, source, changes: () => changes };
}

describe("TLS options from files", () => {
  it("stay unchanged while the files do", async (t) => {
    const { source, lines, changes } = await setUp(t);
    const before = source.current;
    await source.check();
    await source.check();
    assert.equal(source.current, before);
    assert.deepEqual([changes(), lines], [0, []]);
  });

  it("change with a new pair, also one written before the first read", async (t) => {
    const { source, write, lines, changes } = await setUp(t);
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
    const { source, write, lines, changes } = await setUp(t);
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
    const { source, path, write, lines } = await setUp(t);
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

  it("are refused at the start with the name of the bad file", async (t) => {
    const { path, write, clock } = await setUp(t);
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
      await assert.rejects(followTlsFiles({ ...good, ...bad }, { clock, logger }), {
        message: expected,
      });
    }
  });

  it("report an expired certificate, and are accepted all the same", async (t) => {
    const { path } = await setUp(t);
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
    const open = async (nowMs: number) =>
      (await followTlsFiles(files, { clock: new ManualClock(nowMs), logger })).close();
    await open(Date.now());
    assert.deepEqual(said, []);
    const years = 20 * 365 * 86_400_000;
    await open(Date.now() + years);
    assert.deepEqual(
      said.filter((_, i) => i % 2 === 1),
      [files.certFile, files.trustedCaFile],
    );
    assert.match(String(said[0]), /^a certificate has expired: others refuse connections/);
  });

  it("follow a symbolic link that changes its target", async (t) => {
    const { source, path, write } = await setUp(t);
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
    const { source, write, clock } = await setUp(t);
    write("cert.pem", NEW.certPem);
    write("key.pem", NEW.keyPem);
    const changed = new Promise((resolve) => source.onChange(resolve));
    clock.advance(FILE_RELOAD_PERIOD_MS);
    await changed;
    assert.equal(source.current.certPem, NEW.certPem);
  });
});

describe("files that are long, or no files", () => {
  it("hold up nothing: entries of a list and certificates of a bundle are read in slices", async (t) => {
    /** A clock on which each look takes a millisecond. */
    let nowMs = 0;
    let ends = 0;
    const slow = {
      monotonicMs: () => ++nowMs,
      endOfTurn(task: () => void) {
        ends++;
        setImmediate(task);
      },
    };
    const clock = Object.assign(new ManualClock(), { turns: new Turns(slow) });
    const { source, write } = await setUp(t, clock);
    const others = Array.from({ length: 20_000 }, (_, i) => ({ ...OLD, serial: 0x100_0000 + i }));
    write("crl.der", makeRevocationList(CA, others));
    ends = 0;
    await source.check();
    assert.equal(source.current.revokedSerials?.size, 20_000);
    // It looks at the clock 400 times.
    assert.ok(ends >= 50, `${ends} turns`);
    write("crl.der", makeRevocationList(CA, []));
    write("ca.pem", CA.certPem.repeat(MAX_FILE_CERTIFICATES));
    ends = 0;
    await source.check();
    assert.ok(ends >= 25, `${ends} turns`);
    assert.equal(source.current.trustedCaPem?.length, CA.certPem.length * MAX_FILE_CERTIFICATES);
  });

  it("are refused beyond their bounds, and those from before stay", async (t) => {
    const { source, path, write, lines, changes } = await setUp(t);
    // A list with more parts than there are: each would cost a moment.
    const parts = Buffer.alloc(60_000, Buffer.from("0500", "hex"));
    const within = (content: Buffer): Buffer => {
      const head = Buffer.from([0x30, 0x83, 0, 0, 0]);
      head.writeUIntBE(content.length, 2, 3);
      return Buffer.concat([head, content]);
    };
    const refused: readonly (readonly [string, string | Buffer, RegExp])[] = [
      [
        "crl.der",
        Buffer.alloc(MAX_TLS_FILE_BYTES + 1),
        /crl\.der: it is longer than 4194304 bytes/,
      ],
      ["crl.der", within(within(parts)), /crl\.der: not a certificate revocation list/],
      ["crl.der", "-----BEGIN X509 CRL-----\n".repeat(50_000), /crl\.der: .*truncated/],
      [
        "ca.pem",
        CA.certPem.repeat(MAX_FILE_CERTIFICATES + 1),
        /ca\.pem contains 201 certificates; at most 200 are read/,
      ],
      ["ca.pem", OLD.keyPem.repeat(1000), /ca\.pem contains no complete certificate/],
    ];
    for (const [name, content, reason] of refused) {
      const good = readFileSync(path(name));
      write(name, content);
      await source.check();
      assert.match(lines.at(-1)!, reason);
      write(name, good);
      await source.check();
    }
    for (const other of ["/dev/zero", "pipe", "."]) {
      rmSync(path("crl.der"));
      if (other === "pipe") execFileSync("mkfifo", [path("crl.der")]);
      else symlinkSync(other, path("crl.der"));
      await source.check();
      assert.match(lines.at(-1)!, /^warn cannot use changed TLS files/, other);
    }
    const warnings = lines.filter((line) => line.startsWith("warn"));
    assert.equal(warnings.length, refused.length + 3, "each is said once");
    // A file that is too long is not looked into, so that the one from before is no change.
    assert.deepEqual([source.current.trustedCaPem, changes()], [CA.certPem, refused.length - 1]);
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
    const { source, path, write, lines } = await setUp(t);
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
    const { source, write, lines, changes } = await setUp(t);
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
    const { source, write } = await setUp(t);
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
