/**
 * Writes the pictures of docs/pictures: rooms.svg from the import directions that the house's test
 * holds, and NAME.svg from each NAME.txt there.
 *
 *   node scripts/gen-pictures.ts           write them
 *   node scripts/gen-pictures.ts --check   write nothing; exit 1 if one would change
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { directions } from "../test/house/directions.ts";
import { roomsPicture } from "./pictures/rooms.ts";
import { sequencePicture } from "./pictures/sequence.ts";

const folder = join(import.meta.dirname, "../docs/pictures");

const words: Readonly<Record<string, readonly string[]>> = {
  proto: ["the wire: codecs, errors"],
  host: ["clock, randomness,", "disk, network, logs"],
  raft: ["agreement, as a state", "machine without effects"],
  rpc: ["HTTP/2 and gRPC", "for clients"],
  wal: ["the log on disk", "in etcd's format"],
  bolt: ["etcd's database files"],
  store: ["keys and history, leases,", "members; apply(entry)"],
  backup: ["continuous backups,", "rebuilt at any revision"],
  transport: ["members talking", "to members"],
  server: ["one member: its loop,", "services, metrics"],
  client: ["the TypeScript client"],
  ctl: ["quoratectl and", "quorateutl"],
};

function main(args: string[]): number {
  if (args.length > 1 || (args.length === 1 && args[0] !== "--check")) {
    console.error("usage: gen-pictures.ts [--check]");
    return 2;
  }
  const imports = Object.fromEntries(
    Object.entries(directions).map(([room, others]) => [room, Object.keys(others)]),
  );
  const pictures = new Map([["rooms.svg", roomsPicture({ imports, words })]]);
  for (const name of readdirSync(folder)
    .filter((one) => one.endsWith(".txt"))
    .sort())
    pictures.set(
      name.replace(/txt$/, "svg"),
      sequencePicture(readFileSync(join(folder, name), "utf8")),
    );
  const stale = [...pictures].filter(
    ([name, svg]) =>
      !existsSync(join(folder, name)) || readFileSync(join(folder, name), "utf8") !== svg,
  );
  if (args[0] !== "--check")
    for (const [name, svg] of stale) writeFileSync(join(folder, name), svg);
  else if (stale.length > 0) {
    console.error(
      `out of date: ${stale.map(([name]) => `docs/pictures/${name}`).join(", ")}; run node scripts/gen-pictures.ts`,
    );
    return 1;
  }
  return 0;
}

process.exitCode = main(process.argv.slice(2));
