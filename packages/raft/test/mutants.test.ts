/**
 * The random schedules are only worth what they catch. Always: each mutant still applies to the
 * source. With RAFT_MUTANTS=1 (minutes): each mutant is planted in a copy of the package, and seeds
 * are run until one fails (or the scenarios are, where the bug is too rare for schedules);
 * RAFT_MUTANTS=<part of a name> tries those alone.
 */
import assert from "node:assert/strict";
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { countPlaces, replacePlaces } from "@quorate/host/testing";
import { type Mutant, mutants } from "../../../test/mutants/raft.ts";
import { parseScenario, rewriteScenario } from "./scenario/file.ts";
import type { Lab } from "./scenario/lab.ts";

const packageDir = fileURLToPath(new URL("..", import.meta.url));
const DEFAULT_MAX_SEEDS = 3000;

test("every mutant changes one place of the source", () => {
  for (const mutant of mutants) {
    const text = readFileSync(join(packageDir, "src", mutant.file), "utf8");
    assert.equal(
      countPlaces(text, mutant.before),
      1,
      `${mutant.name}: its place in ${mutant.file}`,
    );
  }
});

interface Copy {
  readonly optionsOf: (seed: number) => unknown;
  readonly World: new (options: unknown) => { runFaults(): void; runHealed(): void };
  readonly Lab: typeof Lab;
}

/** Plants a mutant in a copy and returns the copy's simulator and bench. */
async function plant(mutant: Mutant, root: string, number: number): Promise<Copy> {
  const dir = join(root, "packages", `raft${number}`);
  cpSync(packageDir, dir, { recursive: true });
  const file = join(dir, "src", mutant.file);
  writeFileSync(file, replacePlaces(readFileSync(file, "utf8"), mutant.before, mutant.after));
  const load = (path: string): Promise<object> => import(pathToFileURL(join(dir, path)).href);
  return {
    ...(await load("test/sim/options.ts")),
    ...(await load("test/sim/world.ts")),
    ...(await load("test/scenario/lab.ts")),
  } as Copy;
}

/** The first seed that fails, with what it says; undefined if none does. */
function firstFailure(sim: Copy, maxSeeds: number): string | undefined {
  for (let seed = 1; seed <= maxSeeds; seed++) {
    try {
      const world = new sim.World(sim.optionsOf(seed));
      world.runFaults();
      world.runHealed();
    } catch (error) {
      return `seed ${seed}, ${(error as Error).name}: ${(error as Error).message.split("\n")[0]}`;
    }
  }
  return undefined;
}

/** The scenarios that turn out differently; undefined if all are the same. */
function changedScenarios(copy: Copy): string | undefined {
  const dir = join(packageDir, "test", "scenarios");
  const changed = readdirSync(dir).filter((name) => {
    const text = readFileSync(join(dir, name), "utf8");
    const lab = new copy.Lab();
    return rewriteScenario(parseScenario(text), (command) => lab.run(command)) !== text;
  });
  return changed.length === 0 ? undefined : changed.join(" ");
}

const wanted = process.env["RAFT_MUTANTS"];
test("every mutant is caught", {
  skip: wanted === undefined ? "set RAFT_MUTANTS=1: takes minutes" : false,
}, async (context) => {
  const missed: string[] = [];
  const root = mkdtempSync(join(tmpdir(), "raft-mutants-"));
  symlinkSync(join(packageDir, "..", "..", "node_modules"), join(root, "node_modules"));
  writeFileSync(join(root, "package.json"), '{ "type": "module" }');
  try {
    for (const [number, mutant] of mutants.entries()) {
      if (wanted !== "1" && !mutant.name.includes(wanted!)) continue;
      const copy = await plant(mutant, root, number);
      const found =
        mutant.by === "scenarios"
          ? changedScenarios(copy)
          : firstFailure(copy, mutant.maxSeeds ?? DEFAULT_MAX_SEEDS);
      context.diagnostic(`${mutant.name}: ${found ?? "NOT CAUGHT"}`);
      if (found === undefined) missed.push(mutant.name);
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  assert.deepEqual(missed, []);
});
