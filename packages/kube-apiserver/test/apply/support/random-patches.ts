/** Random documents with patches for them. */
import type { Dice } from "../../../../../test/support/random.ts";

type Fields = Record<string, unknown>;

const NAMES = ["a", "b", "c", "d", "e"];

/** Any JSON value. */
function anyValue(dice: Dice, depth: number): unknown {
  const kind = dice.below(depth > 0 ? 8 : 5);
  if (kind === 0) return null;
  if (kind === 1) return dice.below(5);
  if (kind === 2) return dice.pick(["", "x", "y/z", "~"]);
  if (kind === 3) return dice.chance(50);
  if (kind === 4) return dice.pick([[], {}]);
  if (kind === 5) return dice.some(NAMES).map(() => anyValue(dice, depth - 1));
  return anyFields(dice, depth);
}

function anyFields(dice: Dice, depth: number): Fields {
  const names = dice.some([...NAMES, "/", "~1"]);
  return Object.fromEntries(names.map((name) => [name, anyValue(dice, depth - 1)]));
}

/** A step of a path that often exists. */
function step(dice: Dice, value: unknown): string {
  if (Array.isArray(value) && dice.chance(90)) {
    return dice.pick(["-", "0", "1", "-1", "2", "01", "+1", "x", "9"]);
  }
  const names = typeof value === "object" && value !== null ? Object.keys(value) : [];
  const name = names.length > 0 && dice.chance(85) ? dice.pick(names) : dice.pick(NAMES);
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function pathIn(dice: Dice, document: unknown): string {
  let path = "";
  let at = document;
  for (let depth = 1 + dice.below(3); depth > 0; depth--) {
    const next = step(dice, at);
    path += `/${next}`;
    at = (at as Fields | null | undefined)?.[next];
    if (typeof at !== "object") break;
  }
  return dice.chance(2) ? "" : path;
}

function operation(dice: Dice, document: unknown): Fields {
  const op = dice.pick(["add", "add", "remove", "replace", "test", "move", "copy", "nothing"]);
  if (op === "nothing" && dice.chance(70)) return operation(dice, document);
  const fields: Fields = { op, path: pathIn(dice, document) };
  if (op === "move" || op === "copy") fields["from"] = pathIn(dice, document);
  else if (dice.chance(95)) fields["value"] = anyValue(dice, 2);
  return fields;
}

export function jsonPatchCase(dice: Dice): Fields {
  const document = anyFields(dice, 4);
  const count = 1 + dice.below(3);
  const patch = Array.from({ length: count }, () => operation(dice, document));
  return { type: "json-patch", document, patch };
}

export function mergePatchCase(dice: Dice): Fields {
  const patch = dice.chance(95) ? anyFields(dice, 4) : anyValue(dice, 2);
  return { type: "merge-patch", document: anyFields(dice, 4), patch };
}

function item(dice: Dice, name: string, isPatch: boolean): Fields {
  const fields: Fields = dice.chance(isPatch ? 97 : 100) ? { name } : {};
  if (dice.chance(50)) fields["value"] = maybeNull(dice, isPatch, () => dice.pick(NAMES));
  if (dice.chance(30)) fields["count"] = dice.below(5);
  if (dice.chance(30)) {
    fields["ports"] = dice.some([1, 2, 3]).map((port) => ({ port, protocol: dice.pick(NAMES) }));
    if (isPatch && dice.chance(20)) {
      const ports = dice.chance(90) ? (fields["ports"] as Fields[]) : [{ port: 1 }];
      fields["$setElementOrder/ports"] = ports.map(({ port }) => ({ port }));
    }
  }
  if (dice.chance(20)) fields["args"] = dice.some(NAMES);
  if (isPatch && dice.chance(15)) {
    fields["$patch"] = dice.pick(["delete", "delete", "delete", "replace", "merge", "x"]);
  }
  if (isPatch && dice.chance(5)) fields["$retainKeys"] = dice.some(["name", "value", "count"]);
  return fields;
}

function maybeNull(dice: Dice, isPatch: boolean, make: () => unknown): unknown {
  return isPatch && dice.chance(15) ? null : make();
}

const LISTS: Readonly<Record<string, (dice: Dice, isPatch: boolean) => unknown>> = {
  items: (dice, isPatch) => dice.some(NAMES).map((name) => item(dice, name, isPatch)),
  kept: (dice, isPatch) => dice.some(NAMES).map((name) => item(dice, name, isPatch)),
  plain: (dice, isPatch) => dice.some(NAMES).map((name) => item(dice, name, isPatch)),
  words: (dice) => dice.some(NAMES),
  numbers: (dice) => dice.some([1, 2, 3, 4]),
  rest: (dice) => dice.some(NAMES),
};

function mode(dice: Dice, isPatch: boolean): Fields {
  const fields: Fields = {};
  for (const name of dice.some(["type", "a"])) {
    fields[name] = maybeNull(dice, isPatch, () => dice.pick(NAMES));
  }
  if (dice.chance(30)) fields["b"] = item(dice, "b", false);
  if (isPatch && dice.chance(40)) {
    fields["$retainKeys"] = dice.chance(80) ? Object.keys(fields) : dice.some(["type", "a", "b"]);
  }
  if (isPatch && dice.chance(10)) fields["$patch"] = dice.pick(["replace", "delete", "x"]);
  return fields;
}

function document(dice: Dice, isPatch: boolean): Fields {
  const fields: Fields = {};
  for (const name of dice.some(Object.keys(LISTS))) {
    fields[name] = maybeNull(dice, isPatch, () => LISTS[name](dice, isPatch));
    if (isPatch) directives(dice, fields, name);
  }
  for (const name of dice.some(["mode", "whole"])) {
    fields[name] = maybeNull(dice, isPatch, () => mode(dice, isPatch));
  }
  if (dice.chance(40)) {
    const data = dice.some(NAMES).map((key) => [key, maybeNull(dice, isPatch, () => "x")]);
    fields["data"] = Object.fromEntries(data);
  }
  if (dice.chance(40)) fields["metadata"] = { name: "x", finalizers: dice.some(NAMES) };
  if (isPatch && dice.chance(5)) fields["unknown"] = dice.pick<unknown>([1, [1], { a: 1 }]);
  return fields;
}

function directives(dice: Dice, fields: Fields, name: string): void {
  if (dice.chance(30)) {
    const list = fields[name];
    const isMaps = ["items", "kept", "plain"].includes(name);
    const all: readonly unknown[] = name === "numbers" ? [1, 2, 3, 4] : NAMES;
    let order: unknown[] = isMaps ? all.map((each) => ({ name: each })) : [...all];
    if (Array.isArray(list) && dice.chance(70)) {
      order = list.map((each) => (isMaps ? { name: (each as Fields)["name"] } : each));
      if (dice.chance(50)) order.push(isMaps ? { name: "z" } : "z");
    }
    fields[`$setElementOrder/${name}`] = order;
    if (dice.chance(30)) delete fields[name];
  }
  // What is added and removed at once depends on the order of Go's maps.
  const added = fields[name] ?? [];
  if (!["words", "numbers"].includes(name) || !dice.chance(40) || fields[name] === null) return;
  const all: readonly unknown[] = name === "numbers" ? [1, 2, 3, 4] : NAMES;
  const gone = dice.some(all).filter((item) => !(added as unknown[]).includes(item));
  fields[`$deleteFromPrimitiveList/${name}`] = gone;
}

export function strategicMergeCase(dice: Dice): Fields {
  return { type: "strategic-merge", document: document(dice, false), patch: document(dice, true) };
}
