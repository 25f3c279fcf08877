/** Saving a snapshot from a fake member. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeIo } from "@quorate/cli/testing";
import type { Client } from "@quorate/client";
import { saveSnapshot } from "../src/connect/save-snapshot.ts";

test("a save that is stopped ends at the next message and leaves no file", async () => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-snapshot-"));
  const stop = new AbortController();
  let messages = 0;
  const client = {
    async *snapshot() {
      for (;;) {
        if (++messages === 2) stop.abort();
        yield { blob: new Uint8Array(100), remainingBytes: 1e9, version: "3.7.0" };
      }
    },
  };
  try {
    const options = { stop: stop.signal };
    const saved = saveSnapshot(client as unknown as Client, `${dir}/s`, new FakeIo(), options);
    await assert.rejects(saved, { name: "AbortError" });
    assert.equal(messages, 2);
    assert.deepEqual(readdirSync(dir), []);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
