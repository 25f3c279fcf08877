/**
 * ./dev docs site and ./dev docs serve: the documentation as a site, from docs/, README.md,
 * CONTRIBUTING.md and the README of each package.
 */

import { join, resolve } from "node:path";
import { readArguments, switchOption } from "../dev/command-line.ts";
import { ROOT } from "../dev/commands.ts";
import { buildSite } from "./build.ts";
import { serveSite } from "./serve.ts";

const { values: options } = readArguments(
  "./dev docs site [OPTIONS]: builds the documentation site",
  {
    out: { type: "string", default: join(ROOT, "dist/site"), describe: "directory of the site" },
    serve: switchOption("serve it then, on 127.0.0.1"),
    port: { type: "number", default: 8080, describe: "port of --serve" },
  },
);

const out = resolve(options.out);
await buildSite(out);
console.log(`wrote ${out}`);
if (options.serve) console.log((await serveSite(out, options.port)).url);
