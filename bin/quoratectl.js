#!/bin/sh
//usr/bin/env true; f=$(readlink -f "$0") || f=$0; n="${f%/bin/*}/node_modules/.bin/node"; s=--disable-sigusr1; [ -x "$n" ] || { n=node; s=; }; case "${NODE_OPTIONS:-}" in *--inspect* | *--debug-port*) s= ;; esac; exec "$n" $s "$f" "$@"
// The line above is for sh: it takes the shortest way to the pinned Node, which then ignores
// SIGUSR1 (launch.js has the reason). Node skips it.
import { launch } from "./launch.js";

await launch("quoratectl", "packages/ctl/bin/quoratectl-main.ts");
