import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { OwnCertificateError, ownCertificates } from "../../node/certificates.ts";

const root = mkdtempSync(join(tmpdir(), "quorate-certificates-"));
after(() => rmSync(root, { recursive: true, force: true }));
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
