/**
 * The next step that operators are advised to take, for errors as the system and LevelDB word them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nextStep } from "../node/next-step.ts";

test("errors of the system have a next step; others have none", () => {
  for (const [message, step] of [
    [
      "data/member/store/db: IO error: data/member/store/db/000007.ldb: No space left on device",
      /^free space on the disk .* start the member again/,
    ],
    [
      "m1/member/wal.tmp/0-0.wal: no space left on the disk (ENOSPC, write)",
      /^free space on the disk/,
    ],
    [
      "/var/lib/quorate/m1: permission denied (EACCES, mkdir)",
      /^the member runs as user 123, who must own its files/,
    ],
    [
      "listen tcp 127.0.0.1:2380: bind: address already in use (for http://localhost:2380)",
      /ss -ltnp 'sport = :2380' names it$/,
    ],
    [
      "listen tcp 10.9.9.9:2380: bind: cannot assign requested address",
      /must have addresses of this machine/,
    ],
    ["accept: too many open files (EMFILE)", /LimitNOFILE/],
    ["x: read-only file system (EROFS, open)", /mount the file system for writing/],
    ["x: input/output error (EIO, read)", /member replace/],
  ] as const) {
    assert.match(nextStep(message, "user 123") ?? "", step, message);
  }
  assert.equal(nextStep("walpb: crc mismatch", "user 123"), undefined);
});
