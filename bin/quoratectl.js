#!/bin/sh
//usr/bin/env true; f=$(readlink -f "$0") || f=$0; n="${f%/bin/*}/node_modules/.bin/node"; [ -x "$n" ] || n=node; exec "$n" "$f" "$@"
// The line above is for sh: it takes the shortest way to the pinned Node. Node skips it.
import { launch } from "./launch.js";

await launch("quoratectl", "packages/ctl/bin/quoratectl-main.ts");
