#!/bin/sh
//usr/bin/env true; f=$(readlink -f "$0") || f=$0; n="${f%/bin/*}/node_modules/.bin/node"; [ -x "$n" ] || n=node; exec "$n" "$f" "$@"
// sh executes the line above and finds the pinned Node; for Node it is a comment.
import { launch } from "./launch.js";

await launch("quoratectl", "packages/ctl/bin/quoratectl-main.ts");
