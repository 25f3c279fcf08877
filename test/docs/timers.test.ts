/** The page of timers has each time of the code, with its value, and names faults that exist. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { FAULT_KINDS, optionsOf } from "@quorate/sim";

const root = join(import.meta.dirname, "../..");
const PAGE = readFileSync(join(root, "docs/internals/timers.md"), "utf8");
/** Packages that a simulated member and its clients' connections are made of, and front-ends. */
const SOURCES = "{{raft,wal,store,member,services,transport,rpc}/src,front/{src,node}}/**/*.ts";
const TIMER = /^(?:export )?const ([A-Z][A-Z0-9_]*_(MS|SECONDS|TICKS))(?:: number)? =\s*([^;]*);/gm;
/** Names with a unit that are no times. */
const NO_TIMES = [
  "member/src/reads/slices.ts BYTES_PER_MS",
  // The most that a request may say: a longer one is cut to it.
  "rpc/src/gateway/metadata.ts MAX_TIMEOUT_MS",
];
const THEMES = ["leases", "handovers", "slow"];

/** The rows of the page: what the second column names, its value, and the last column. */
const rows = [...PAGE.matchAll(/^\|[^|]*\| `(\w+)` of (\S+) \| ([^|]*) \| ([^|]*) \|$/gm)].map(
  ([, name, file, value, beyond]) => ({ key: `${file} ${name}`, value: value!, beyond: beyond! }),
);

/** The value of a product of numbers, as 5 * 60_000. */
const productOf = (text: string): number | undefined =>
  /^[\d_]+(?: \* [\d_]+)*$/.test(text)
    ? text
        .split(" * ")
        .map((part) => Number(part.replaceAll("_", "")))
        .reduce((product, one) => product * one)
    : undefined;

test("each time that the code waits for has a row with its value", () => {
  const found = new Map<string, string>();
  for (const file of globSync(SOURCES, { cwd: join(root, "packages") }))
    for (const [, name, unit, text] of readFileSync(join(root, "packages", file), "utf8").matchAll(
      TIMER,
    )) {
      const value = productOf(text!);
      const key = `${file} ${name}`;
      if (value === undefined || NO_TIMES.includes(key)) continue;
      const shown = (unit === "SECONDS" ? 1000 * value : value).toLocaleString("en-US");
      found.set(key, unit === "TICKS" ? `${shown} ticks` : shown);
    }
  assert.deepEqual(
    Object.fromEntries(rows.map(({ key, value }) => [key, value]).sort()),
    Object.fromEntries([...found].sort()),
  );
});

test("what delays beyond a timer is a fault, an option, a theme or a test that exists", () => {
  const known = new Set<string>([...FAULT_KINDS, ...THEMES, ...Object.keys(optionsOf(1))]);
  const tests = new Set(
    globSync("packages/*/test/**/*.test.ts", { cwd: root }).map((path) => basename(path)),
  );
  for (const { key, beyond } of rows) {
    const names = [...beyond.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
    for (const name of names) assert.ok(known.has(name), `${key}: ${name} is no fault or option`);
    for (const [name] of beyond.matchAll(/[\w-]+\.test\.ts/g))
      assert.ok(tests.has(name), `${key}: ${name} is not there`);
    assert.ok(names.length > 0 || beyond.startsWith("No: "), `${key} has nothing beyond it`);
  }
});
