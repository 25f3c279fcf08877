/**
 * The way of one request through the code of one process.
 *
 * V8 counts the calls of every function in windows of equal length: some with one request, some
 * with the baseline. A function belongs to the way if it is called more often with a request than
 * without one, in the window with the fewest calls and in the middle one. So a timer's function
 * drops out, also where one window had a tick more, and a function that both timers and requests
 * call stays.
 */

import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { defined } from "@quorate/proto";
import { ROOT } from "../commands.ts";
import type { Place } from "./inspector.ts";
import { openScene, type Scene } from "./kinds.ts";

/** Longer than the interval at which the backend writes its batch. */
const WINDOW_MS = 400;
const WINDOWS = 6;

export interface RanFunction {
  readonly name: string;
  /** Lines of the file, from 1. */
  readonly first: number;
  readonly last: number;
}

export interface RanFile {
  /** From the repository's root. */
  readonly path: string;
  /** In the order of their first calls, as the files are. */
  readonly functions: readonly RanFunction[];
  /** Lines of the functions, without functions inside them that did not run. */
  readonly ranLines: number;
  readonly fileLines: number;
}

/** Measures the request of that kind. */
export async function measurePath(kind: string): Promise<RanFile[]> {
  await using scene = await openScene(kind);
  const known = new Map<string, Place>();
  const windows = { request: [] as Counts[], baseline: [] as Counts[] };
  for (let window = 0; window < WINDOWS; window++) {
    for (const what of ["baseline", "request"] as const) {
      const counts = await countCalls(scene, scene[what]);
      for (const [key, place] of counts) known.set(key, place);
      windows[what].push(counts);
    }
  }
  const ran = [...known].filter(([key]) => {
    const request = countsOf(windows.request, key);
    const baseline = countsOf(windows.baseline, key);
    return [0, WINDOWS >> 1].every((at) => request[at] > baseline[at]);
  });
  const places = ran.map(([, place]) => place);
  const sources = new Map(places.map(({ path }) => [path, new Source(path)]));
  const order = await scene.inspector.orderOf(
    places,
    ({ path, start }) => defined(sources.get(path), "the source").locate(start),
    scene.request,
    WINDOW_MS,
  );
  const seen = new Set(order);
  const ordered = [...order, ...places.keys().filter((index) => !seen.has(index))];
  return Map.groupBy(
    ordered.map((index) => places[index]),
    ({ path }) => path,
  )
    .entries()
    .map(([path, functions]) =>
      defined(sources.get(path), "the source").fileOf(functions, [...known.values()]),
    )
    .toArray();
}

type Counts = ReadonlyMap<string, Place>;

/** The calls of a function in each window, ascending. One that is not listed did not run. */
function countsOf(windows: readonly Counts[], key: string): number[] {
  return windows.map((counts) => counts.get(key)?.count ?? 0).sort((a, b) => a - b);
}

async function countCalls({ inspector }: Scene, action: () => Promise<void>): Promise<Counts> {
  await inspector.take();
  const endMs = performance.now() + WINDOW_MS;
  await action();
  await delay(Math.max(0, endMs - performance.now()));
  return inspector.take();
}

/** A file by lines. */
class Source {
  readonly #path: string;
  /** Offsets at which lines begin. */
  readonly #starts: readonly number[];

  constructor(path: string) {
    this.#path = path;
    const lines = readFileSync(path, "utf8").replace(/\n$/, "").split("\n");
    const starts = [0];
    for (const line of lines.slice(0, -1)) starts.push(starts.at(-1)! + line.length + 1);
    this.#starts = starts;
  }

  /** Line and column from 0. */
  locate(offset: number): { readonly lineNumber: number; readonly columnNumber: number } {
    const line = this.#starts.findLastIndex((start) => start <= offset);
    return { lineNumber: line, columnNumber: offset - this.#starts[line] };
  }

  /** @param known also functions that did not run */
  fileOf(functions: readonly Place[], known: readonly Place[]): RanFile {
    const lineOf = (offset: number): number => this.locate(offset).lineNumber + 1;
    const all = known
      .filter(({ path }) => path === this.#path)
      .sort((a, b) => a.start - b.start || b.end - a.end);
    const lines = new Set<number>();
    // From outside in: what did not run is taken out of what contains it, but for shared lines.
    for (const place of all) {
      const [first, last] = [lineOf(place.start), lineOf(place.end)];
      if (functions.includes(place)) for (let at = first; at <= last; at++) lines.add(at);
      else for (let at = first + 1; at < last; at++) lines.delete(at);
    }
    return {
      path: relative(ROOT, this.#path),
      functions: functions.map(({ name, start, end }) => ({
        name: name === "" ? "(anonymous)" : name,
        first: lineOf(start),
        last: lineOf(end),
      })),
      ranLines: lines.size,
      fileLines: this.#starts.length,
    };
  }
}
