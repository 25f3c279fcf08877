#!/bin/sh
//usr/bin/env true; f=$(readlink -f "$0") || f=$0; n="${f%/bin/*}/node_modules/.bin/node"; [ -x "$n" ] || n=node
//usr/bin/env true; case "$n $NODE_OPTIONS" in node\ * | *--inspect* | *--debug-port*) s= ;; *) s=--disable-sigusr1 ;; esac
//usr/bin/env true; exec "$n" $s "$f" "$@"
// The lines above are for sh: it takes the shortest way to the pinned Node, which then ignores
// SIGUSR1 (launch.js has the reason). Node skips them.
import { launch } from "./launch.js";

// Flags of V8, measured with 150,000 puts of 1000 clients. Without them: 290 MiB and 21
// microseconds a put. With young halves of 8 MiB: 254 and 22. With a full collection when the heap
// has grown by 100 %, not 300, too: 190 and 21; by 70 %: 176 and 21; by 50 %: 172 and 24.
//
// The index of the keys is on V8's heap, which by itself ends at 4 GiB: some 30 million keys.
//
// And two settings of the C library. Without the first each of Node's threads, and each of
// LevelDB's, keeps freed memory in an arena of its own, 170 MiB after 20,000 puts instead of 145.
// Without the second, small pieces of freed memory are put into lists, and the next large request
// joins all of them at once: after a read of 500,000 records that held the event loop for 20 to
// 90 ms. A thread keeps up to 256 pieces of a size for itself instead.
await launch(
  "quorate",
  "packages/quorate/node/main.ts",
  ["--max-semi-space-size=8", "--heap-growing-percent=70", "--max-old-space-size-percentage=75"],
  {
    MALLOC_ARENA_MAX: "2",
    GLIBC_TUNABLES: "glibc.malloc.mxfast=0:glibc.malloc.tcache_count=256",
  },
);
