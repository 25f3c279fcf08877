/**
 * The attack finds work that grows faster than the text, and nothing else.
 * @slow
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { endsWithUs } from "../../support/children.ts";
import { Attack, type Victims } from "./attack.ts";
import type { Shape } from "./shapes.ts";
import { slotsOf } from "./slots.ts";

const SERVER = join(import.meta.dirname, "planted-server.ts");
const PORT = "planted";

function shape(path: string, more: Partial<Shape>): Shape {
  const none = { query: {}, headers: {}, bodyType: "none" } as const;
  return { port: PORT, method: "POST", path, name: path, ...none, ...more };
}

const entries = (path: string): Shape =>
  shape(path, { bodyType: "json", body: { entries: ["a"] } });
const SHAPES: readonly Shape[] = [
  shape("/list", { headers: { "x-list": "a" } }),
  shape("/list-linear", { headers: { "x-list": "a" } }),
  shape("/path/a", {}),
  entries("/entries"),
  entries("/entries-linear"),
  shape("/form", { bodyType: "form", body: { value: "a" } }),
];

async function startPlanted(): Promise<Victims> {
  const child: ChildProcess = spawn(process.execPath, [SERVER], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  endsWithUs(child);
  const [line] = (await once(child.stdout!, "data")) as [Buffer];
  const where = { port: Number(line.toString()), tls: false };
  return {
    targets: new Map([[PORT, { where, pids: [child.pid!] }]]),
    rootToken: "",
    get hasEnded() {
      return child.exitCode !== null;
    },
    logTails: () => "",
    async stop() {
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}

test("planted work beyond the text is found in its slot, and linear work is not", async () => {
  const options = {
    minutes: 2,
    seed: 1,
    from: 0,
    cases: 800,
    block: 200,
    only: "",
    limitMsPerKib: 1,
    freshEvery: 1e9,
    logEveryMs: 1e9,
    protocols: ["http/1.1"] as const,
  };
  const slots = SHAPES.flatMap(slotsOf).filter(
    ({ kind, label }) =>
      kind === "many" || label === "form  names" || /x-list|segment 1/.test(label),
  );
  const attack = new Attack(
    options,
    slots,
    startPlanted,
    process.env["V"] ? console.log : () => {},
  );
  await attack.run();
  const found = [...attack.found.values()].map(
    ({ what, label }) => `${what.split(" ")[0]} ${label}`,
  );
  const places = new Set(found);
  for (const place of [
    "/list header x-list",
    "/path/a segment 1 of the path",
    "/entries json entries many",
    "/form form  names",
  ])
    assert.ok(places.has(place), `${place} is not among ${[...places].sort().join("; ")}`);
  const linear = [...places].filter((place) => /-linear (?:header|json)/.test(place));
  assert.deepEqual(linear, []);
});
