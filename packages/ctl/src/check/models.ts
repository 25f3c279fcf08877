/** The loads of the checks, which are etcdctl's. */
import { Exit, ExitCode } from "@quorate/cli";

/** Short and long names. */
const names: Readonly<Record<string, "s" | "m" | "l" | "xl">> = {
  s: "s",
  small: "s",
  m: "m",
  medium: "m",
  l: "l",
  large: "l",
  xl: "xl",
  xLarge: "xl",
};

export const loadNames: readonly string[] = Object.keys(names);

/** A load at a rate. */
export interface PerfModel {
  readonly perSecond: number;
  readonly clients: number;
  readonly seconds: number;
}

const perfModels: Readonly<Record<"s" | "m" | "l" | "xl", PerfModel>> = {
  s: { perSecond: 150, clients: 50, seconds: 60 },
  m: { perSecond: 1000, clients: 200, seconds: 60 },
  l: { perSecond: 8000, clients: 500, seconds: 60 },
  xl: { perSecond: 15_000, clients: 1000, seconds: 60 },
};

/** A load of a number of keys. */
export interface ScaleModel {
  readonly keys: number;
  readonly clients: number;
}

const scaleModels: Readonly<Record<"s" | "m" | "l" | "xl", ScaleModel>> = {
  s: { keys: 10_000, clients: 50 },
  m: { keys: 100_000, clients: 200 },
  l: { keys: 1_000_000, clients: 500 },
  xl: { keys: 3_000_000, clients: 1000 },
};

function nameOf(load: string): "s" | "m" | "l" | "xl" {
  const name = Object.hasOwn(names, load) ? names[load] : undefined;
  if (name === undefined) throw new Exit(ExitCode.badFeature, `unknown load option ${load}`);
  return name;
}

/** Throws Exit for an unknown load. */
export function perfModel(load: string): PerfModel {
  return perfModels[nameOf(load)];
}

/** Throws Exit for an unknown load. */
export function scaleModel(load: string): ScaleModel {
  return scaleModels[nameOf(load)];
}
