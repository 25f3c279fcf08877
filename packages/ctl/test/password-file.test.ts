/** --password-file: what is read, what is refused, and what stays when the file goes bad. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Io } from "@quorate/cli";
import { MAX_PASSWORD_FILE_BYTES, passwordFile } from "../src/connect/globals.ts";

function world() {
  const files = new Map<string, string>();
  const warnings: string[] = [];
  const io = {
    readFile: (path: string) => {
      const text = files.get(path);
      if (text === undefined) throw new Error("no such file");
      return Buffer.from(text);
    },
    stderr: (text: string) => void warnings.push(text),
  } as unknown as Io;
  return { files, warnings, io };
}

test("the file is read at each login, without its line end", () => {
  const { files, warnings, io } = world();
  for (const [text, password] of [
    ["one\n", "one"],
    ["two\r\n", "two"],
    [" three ", " three "],
  ]) {
    files.set("f", text);
    assert.equal(passwordFile("f", io)(), password);
  }
  const read = passwordFile("f", io);
  files.set("f", "four\n");
  assert.equal(read(), "four");
  assert.deepEqual(warnings, []);
});

test("a file that cannot be used is refused at the start, and changes nothing later", () => {
  const { files, warnings, io } = world();
  const bad = ["", "\n", "a\nb\n", "x".repeat(MAX_PASSWORD_FILE_BYTES + 1)];
  for (const text of bad) {
    files.set("f", text);
    assert.throws(() => passwordFile("f", io), /cannot use the password in f/);
  }
  files.delete("f");
  assert.throws(() => passwordFile("f", io), /no such file/);
  files.set("f", "good\n");
  const read = passwordFile("f", io);
  for (const text of bad) {
    files.set("f", text);
    assert.equal(read(), "good");
  }
  assert.equal(warnings.length, bad.length);
  assert.match(warnings[0], /^Warning: cannot use the password in f: it is empty; the one from/);
  assert.ok(warnings.every((text) => !text.includes("good")));
  files.set("f", "next");
  assert.equal(read(), "next");
});
