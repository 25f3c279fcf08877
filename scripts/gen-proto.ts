/**
 * Writes packages/proto/src/gen/ from proto/: an interface and a codec for each message, a const
 * for each enum, the table of messages, the services, and the tables of the JSON mapping.
 *
 *   node scripts/gen-proto.ts           write what changed
 *   node scripts/gen-proto.ts --check   write nothing; exit 1 if something would change
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import protobuf from "protobufjs";
import { readMode } from "./generator.ts";
import { emitDescriptors } from "./proto/descriptors.ts";
import { emitFile } from "./proto/emit.ts";
import { emitJson } from "./proto/json.ts";
import { emitMessages } from "./proto/messages.ts";
import { loadModel } from "./proto/model.ts";
import { emitOpenApi, openApi } from "./proto/openapi.ts";
import { emitServices } from "./proto/services.ts";

const root = join(import.meta.dirname, "..");
const protoDir = join(root, "proto");
const genDir = join(root, "packages/proto/src/gen");

/** The .proto files by name. */
export function protoSources(): Map<string, string> {
  const sources = new Map<string, string>();
  for (const name of readdirSync(protoDir).sort()) {
    if (name.endsWith(".proto")) sources.set(name, readFileSync(join(protoDir, name), "utf8"));
  }
  return sources;
}

/** The generated files by name. */
export function generate(): Map<string, string> {
  const sources = protoSources();
  const model = loadModel(protobuf, sources);
  const out = new Map<string, string>();
  for (const file of model.files) out.set(`${file.name}.ts`, emitFile(file));
  out.set("messages.ts", emitMessages(model));
  out.set("services.ts", emitServices(model));
  out.set("descriptors.json", emitDescriptors(protobuf, sources));
  out.set("json.ts", emitJson(protobuf, sources, model));
  out.set("openapi.json", emitOpenApi(openApi(protobuf, sources)));
  return out;
}

/** Names of the files in gen/ that are missing, differ or should not be there. */
export function outdated(): string[] {
  const files = generate();
  const wrong = [...files].filter(([name, text]) => current(name) !== text).map(([name]) => name);
  return [...wrong, ...unknownFiles(files)].sort();
}

function current(name: string): string | undefined {
  const path = join(genDir, name);
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

function unknownFiles(files: Map<string, string>): string[] {
  return existsSync(genDir) ? readdirSync(genDir).filter((name) => !files.has(name)) : [];
}

function main(args: string[]): number {
  const mode = readMode(
    "gen-proto.ts",
    "the codecs of packages/proto/src/gen from the files of proto/",
    args,
  );
  if (mode === "check") {
    const wrong = outdated();
    if (wrong.length === 0) return 0;
    console.error(
      `packages/proto/src/gen is out of date (${wrong.join(", ")}): run node scripts/gen-proto.ts`,
    );
    return 1;
  }
  mkdirSync(genDir, { recursive: true });
  const files = generate();
  for (const name of unknownFiles(files)) rmSync(join(genDir, name));
  for (const [name, text] of files) {
    if (current(name) === text) continue;
    writeFileSync(join(genDir, name), text);
    console.log(`wrote packages/proto/src/gen/${name}`);
  }
  return 0;
}

if (import.meta.main) process.exitCode = main(process.argv.slice(2));
