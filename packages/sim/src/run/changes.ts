/**
 * How a run's options may be made to differ from those that its seed draws, on the command line:
 * --set name=value and --without fault.
 */
import { FAULT_KINDS, type FaultKind } from "../base/fault-kinds.ts";
import { type Changes, optionsOf } from "../base/options.ts";
import { THEMES } from "../base/themes.ts";

/** Reads --set and --without. Throws an Error that names what there is. */
export function parseChanges(
  set: readonly string[],
  without: readonly string[],
): Changes | undefined {
  if (set.length === 0 && without.length === 0) return undefined;
  const sample: Record<string, unknown> = { ...optionsOf(1) };
  const values: Record<string, unknown> = {};
  for (const one of set) {
    const [name, text] = one.split("=");
    const known = sample[name];
    if (name === "theme" && (THEMES as readonly string[]).includes(text)) {
      values[name] = text;
      continue;
    }
    if (
      text === undefined ||
      (typeof known !== "number" && typeof known !== "boolean") ||
      name === "seed"
    ) {
      const names = Object.keys(sample).filter(
        (key) => ["number", "boolean"].includes(typeof sample[key]) && key !== "seed",
      );
      const themes = `theme (${THEMES.join(", ")})`;
      throw new Error(
        `--set ${one}: it is name=value, with ${themes} or one of ${names.join(", ")}`,
      );
    }
    values[name] = typeof known === "boolean" ? text === "true" : Number(text);
    if (Number.isNaN(values[name])) throw new Error(`--set ${one}: ${text} is no number`);
  }
  const kinds = without.flatMap((list) => list.split(","));
  for (const kind of kinds) {
    if (!(FAULT_KINDS as readonly string[]).includes(kind))
      throw new Error(`--without ${kind}: faults are ${FAULT_KINDS.join(", ")}`);
  }
  return { set: values as Changes["set"], without: kinds as FaultKind[] };
}

/** The command that runs a seed. */
export function commandOf(
  seed: number,
  bug: string | undefined,
  changes: Changes | undefined,
): string {
  const parts = [`./dev sim --seed ${seed}`];
  if (bug !== undefined) parts.push(`--bug ${bug}`);
  for (const [name, value] of Object.entries(changes?.set ?? {}))
    parts.push(`--set ${name}=${value}`);
  const without = changes?.without ?? [];
  if (without.length > 0) parts.push(`--without ${without.join(",")}`);
  return parts.join(" ");
}
