#!/bin/sh
//usr/bin/env true; f=$(readlink -f "$0") || f=$0; n="${f%/bin/*}/node_modules/.bin/node"; [ -x "$n" ] || n=node
//usr/bin/env true; case "$n $NODE_OPTIONS" in node\ * | *--inspect* | *--debug-port*) s= ;; *) s=--disable-sigusr1 ;; esac
//usr/bin/env true; exec "$n" $s "$f" "$@"
// The lines above are for sh: it takes the shortest way to the pinned Node, which then ignores
// SIGUSR1 (launch.js has the reason). Node skips them.
import { launch } from "./launch.js";

await launch("quoratectl", "packages/ctl/bin/quoratectl-main.ts");
