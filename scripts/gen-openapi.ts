/**
 * Writes docs/reference/openapi.json, the OpenAPI 3.1 document of the JSON gateway, from proto/.
 *
 *   node scripts/gen-openapi.ts           write it
 *   node scripts/gen-openapi.ts --check   write nothing; exit 1 if it is out of date
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import protobuf from "protobufjs";
import { protoSources } from "./gen-proto.ts";
import { readMode } from "./generator.ts";
import { openApi } from "./proto/openapi.ts";

const FILE = join(import.meta.dirname, "../docs/reference/openapi.json");

function main(args: string[]): number {
  const mode = readMode(
    "gen-openapi.ts",
    "docs/reference/openapi.json from the files of proto/",
    args,
  );
  const text = openApi(protobuf, protoSources());
  if (existsSync(FILE) && readFileSync(FILE, "utf8") === text) return 0;
  if (mode === "check") {
    console.error("docs/reference/openapi.json is out of date: run node scripts/gen-openapi.ts");
    return 1;
  }
  writeFileSync(FILE, text);
  console.log("wrote docs/reference/openapi.json");
  return 0;
}

if (import.meta.main) process.exitCode = main(process.argv.slice(2));
