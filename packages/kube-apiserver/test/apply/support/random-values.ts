/** Random values of the kinds in thing.ts, from few names and values so that they often meet. */
import type { Dice } from "../../../../../test/support/random.ts";

type Fields = Record<string, unknown>;

const WORDS = ["a", "b", "c", "d<e>"];

/** Sets a field with some chance; sometimes to null. */
function maybe(dice: Dice, into: Fields, name: string, make: () => unknown, percent = 40): void {
  if (!dice.chance(percent)) return;
  into[name] = dice.chance(4) ? null : make();
}

function textMap(dice: Dice): Fields {
  return Object.fromEntries(dice.some(WORDS).map((word) => [word, dice.pick(WORDS)]));
}

function portOf(dice: Dice, port: number): Fields {
  const fields: Fields = { port };
  if (dice.chance(60)) fields["protocol"] = dice.pick(["TCP", "UDP"]);
  maybe(dice, fields, "name", () => dice.pick(WORDS));
  return fields;
}

function containerOf(dice: Dice, name: string): Fields {
  const fields: Fields = { name };
  maybe(dice, fields, "image", () => dice.pick(WORDS));
  maybe(dice, fields, "args", () => dice.some(WORDS));
  maybe(dice, fields, "ports", () => dice.some([80, 81, 443]).map((port) => portOf(dice, port)));
  maybe(dice, fields, "limits", () => textMap(dice));
  return fields;
}

function named(dice: Dice, name: string): Fields {
  const fields: Fields = { name };
  maybe(dice, fields, "value", () => dice.below(3));
  return fields;
}

function freeValue(dice: Dice, depth: number): unknown {
  const kind = dice.below(depth > 0 ? 6 : 4);
  if (kind === 0) return dice.below(3);
  if (kind === 1) return dice.pick(WORDS);
  if (kind === 2) return dice.chance(50);
  if (kind === 3) return dice.below(3) / 2;
  if (kind === 4) return dice.some([1, 2, 3]).map(() => freeValue(dice, depth - 1));
  return Object.fromEntries(dice.some(WORDS).map((word) => [word, freeValue(dice, depth - 1)]));
}

function specOf(dice: Dice): Fields {
  const spec: Fields = {};
  maybe(dice, spec, "replicas", () => dice.below(4));
  maybe(dice, spec, "ratio", () => dice.pick([0.5, 1, 1e-7, 1e21]), 20);
  maybe(dice, spec, "paused", () => dice.chance(50), 20);
  maybe(dice, spec, "text", () => dice.pick(["", ...WORDS]));
  maybe(dice, spec, "either", () => dice.pick<unknown>([1, "1", "50%"]));
  maybe(dice, spec, "containers", () => dice.some(WORDS).map((name) => containerOf(dice, name)));
  maybe(dice, spec, "tags", () => dice.some(WORDS));
  maybe(dice, spec, "numbers", () => dice.some([1, 2, 10, 9]), 20);
  maybe(dice, spec, "nodes", () => dice.some(WORDS).map((name) => named(dice, name)), 25);
  maybe(dice, spec, "selector", () => pickFields(dice, ["app", "tier"]));
  maybe(dice, spec, "nested", () => ({ deep: pickFields(dice, ["value", "other"]) }));
  maybe(dice, spec, "points", () =>
    Object.fromEntries(dice.some(WORDS).map((word) => [word, named(dice, word)])),
  );
  maybe(dice, spec, "free", () => ({ x: freeValue(dice, 3), ...textMap(dice) }));
  maybe(dice, spec, "mixed", () => ({ ...pickFields(dice, ["value"]), y: freeValue(dice, 2) }));
  return spec;
}

function pickFields(dice: Dice, names: readonly string[]): Fields {
  return Object.fromEntries(dice.some(names).map((name) => [name, dice.pick(WORDS)]));
}

/** A random object of thing.ts. */
export function randomThing(dice: Dice, version: string): Fields {
  const metadata: Fields = { name: "thing" };
  if (dice.chance(50)) metadata["namespace"] = "default";
  maybe(dice, metadata, "labels", () => textMap(dice));
  maybe(dice, metadata, "annotations", () => textMap(dice), 30);
  maybe(dice, metadata, "finalizers", () => dice.some(WORDS), 20);
  const thing: Fields = { apiVersion: `example.org/${version}`, kind: "Thing", metadata };
  maybe(dice, thing, "spec", () => specOf(dice), 90);
  maybe(dice, thing, "status", () => statusOf(dice), 30);
  return thing;
}

function statusOf(dice: Dice): Fields {
  const status: Fields = {};
  maybe(dice, status, "phase", () => dice.pick(WORDS));
  maybe(dice, status, "conditions", () =>
    dice.some(WORDS).map((type) => ({ type, status: dice.pick(WORDS) })),
  );
  return status;
}

const STEPS = [
  "f:a",
  "f:b",
  "f:aé",
  "f:\u{1f600}",
  "f:\uff5e",
  'k:{"name":"a"}',
  'k:{"name":"a-b"}',
  'k:{"name":"a<b"}',
  'k:{"port":80,"protocol":"TCP"}',
  'k:{"port":9,"protocol":"UDP"}',
  'k:{ "protocol":"TCP", "port":80 }',
  'k:{"name":true}',
  'v:"a"',
  'v:"b"',
  "v:10",
  "v:9",
  "v:true",
  "v:0.5",
  "i:2",
  "i:10",
  "i:-1",
];

/** Managed fields in any order. */
export function randomFieldsV1(dice: Dice, depth = 3): Fields {
  const fields: Fields = {};
  if (depth < 3 && dice.chance(30)) fields["."] = {};
  for (const step of dice.some(STEPS).slice(0, 6)) {
    // One key in two spellings is one step; which one counts depends on Go's map.
    if (step.includes(" ") && 'k:{"port":80,"protocol":"TCP"}' in fields) continue;
    if (
      step === 'k:{"port":80,"protocol":"TCP"}' &&
      Object.keys(fields).some((key) => key.includes(" "))
    )
      continue;
    fields[step] = depth > 0 && dice.chance(40) ? randomFieldsV1(dice, depth - 1) : {};
  }
  if (dice.chance(3)) fields[dice.pick(["x:a", "f", "i:x", "k:[]", "v:{"])] = {};
  return fields;
}
