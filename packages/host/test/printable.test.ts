/**
 * Texts from clients do not affect a terminal: log lines show control characters as escapes.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { escapeControls } from "@quorate/host";
import { formatForTerminal, nodeLogger } from "@quorate/host/node";

/**
 * Clears the screen, sets the window's title, moves up, an 8-bit CSI, deletes, turns the direction
 * round, and fakes a line.
 */
const HOSTILE =
  "a\x1b[2J\x1b]0;owned\x07\x1b[1A\x9b31m\x7f\u202eb\r\n2026-01-01T00:00:00.000Z info  fake\u2028x\0";
const isClean = (text: string): boolean =>
  [...text].every((char) => {
    const code = char.codePointAt(0)!;
    return code >= 0x20 && (code < 0x7f || code > 0x9f) && code !== 0x2028 && code !== 0x202e;
  });

test("control characters, separators and direction marks become escapes, everything else stays", () => {
  assert.equal(
    escapeControls("a\x1b[2Jb\x9b\u202e\u2028\r\n\t\0"),
    "a\\x1b[2Jb\\x9b\\u202e\\u2028\\x0d\\x0a\\x09\\x00",
  );
  const plain = 'Grüße, 世界 👋 \\x1b "quoted" a=b';
  assert.equal(escapeControls(plain), plain);
});

test("a terminal line is one clean line, whatever part of it a client has sent", () => {
  for (const line of [
    formatForTerminal(new Date(0), "warn", "rpc", HOSTILE, {}, false),
    formatForTerminal(new Date(0), "warn", HOSTILE, "m", {}, false),
    formatForTerminal(
      new Date(0),
      "warn",
      "rpc",
      "m",
      { key: HOSTILE, [HOSTILE]: 1, list: [HOSTILE, "\x7f\x9b"], bare: "\x1b[2J" },
      false,
    ),
  ]) {
    assert.ok(isClean(line), JSON.stringify(line));
  }
  const coloured = formatForTerminal(new Date(0), "warn", "rpc", HOSTILE, { key: HOSTILE }, true);
  assert.ok(
    isClean(coloured.replace("\x1b[33mwarn \x1b[39m", "warn ")),
    "the only escapes are those of the level",
  );
});

test("a logger's terminal output has no control character but line ends", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-printable-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "log");
  const logger = nodeLogger({ outputs: [path], format: "console" });
  logger.child(HOSTILE, { bound: HOSTILE }).error(HOSTILE, { field: HOSTILE });
  logger.close();
  const lines = readFileSync(path, "utf8").split("\n");
  assert.deepEqual(lines.slice(1), [""]);
  assert.ok(isClean(lines[0]), JSON.stringify(lines[0]));
});
