/** Passwords from a terminal and from a pipe, prompt after prompt. */
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, test } from "node:test";
import { MAX_PASSWORD_BYTES, passwordPrompt } from "../src/password-prompt.ts";

function fake(isTTY: boolean) {
  const raw: boolean[] = [];
  const input = Object.assign(new PassThrough(), {
    isTTY,
    setRawMode: (isRaw: boolean) => raw.push(isRaw),
  });
  let shown = "";
  const ask = passwordPrompt(input, (text) => {
    shown += text;
  });
  return { input, raw, ask, shown: () => shown };
}

describe("password prompt", () => {
  test("a pipe holds the answers of several prompts; its end is an empty answer", async () => {
    const { input, ask, raw, shown } = fake(false);
    input.end("one\r\ntwo\nlast");
    assert.equal(await ask("A: "), "one");
    assert.equal(await ask("B: "), "two");
    assert.equal(await ask("C: "), "last");
    assert.equal(await ask("D: "), "");
    assert.equal(shown(), "A: \nB: \nC: \nD: \n");
    assert.deepEqual(raw, []);
  });

  test("a terminal is raw while a line is typed; backspace takes a whole character back", async () => {
    const { input, ask, raw, shown } = fake(true);
    const first = ask("P: ");
    input.write("gr\u00fcx\u007f\u007f\u007fo");
    input.write("\u007f\u007f\u007f\u007fpw\rsecond\n");
    assert.equal(await first, "pw");
    assert.equal(await ask("Q: "), "second");
    assert.deepEqual(raw, [true, false, true, false]);
    assert.equal(shown(), "P: \nQ: \n");
  });

  test("control-C rejects, control-D ends the line, and the terminal is itself again", async () => {
    const { input, ask, raw } = fake(true);
    input.write("abc\u0003");
    await assert.rejects(ask("P: "), /^Error: interrupted$/);
    input.write("xy\u0004");
    assert.equal(await ask("P: "), "y".padStart(2, "x"));
    assert.equal(raw.at(-1), false);
  });

  test("a line without an end is refused at its bound", async () => {
    const { input, ask } = fake(false);
    input.write("x".repeat(MAX_PASSWORD_BYTES + 1));
    await assert.rejects(ask("P: "), /too long/);
  });
});
