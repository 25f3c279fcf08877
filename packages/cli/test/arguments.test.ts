/** Arguments that are not UTF-8 are refused: Node would turn them into other keys. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { argumentTrouble } from "../src/arguments.ts";

const commandLine = (...args: readonly string[]) =>
  Buffer.from([...args].map((arg) => `${arg}\0`).join(""), "latin1");

test("an argument of other bytes than UTF-8 is named; text, also with U+FFFD in it, passes", () => {
  const put = commandLine("node", "quoratectl.js", "put", "k\xff\xfe", "v");
  assert.match(
    argumentTrouble(["put", "k\ufffd\ufffd", "v"], () => put)!,
    /^argument 2 is not UTF-8, and would become "k\ufffd\ufffd"; pass such a key to txn, in double quotes \("\\xff"\), and/,
  );
  const meant = commandLine("node", "--flag", "quoratectl.js", "get", "\xef\xbf\xbd", "");
  assert.equal(
    argumentTrouble(["get", "\ufffd", ""], () => meant),
    undefined,
  );
  const neverAsked = (): never => assert.fail("asked without need");
  assert.equal(argumentTrouble(["get", "grüße", ""], neverAsked), undefined);
  assert.equal(argumentTrouble([], neverAsked), undefined);
});

test("where the system does not expose the bytes, nothing is refused", () => {
  assert.equal(
    argumentTrouble(["\ufffd"], () => {
      throw new Error("no such file");
    }),
    undefined,
  );
});
