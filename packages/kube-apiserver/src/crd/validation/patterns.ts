/**
 * Regular expressions of users. They run in RE2's way, in linear time, so that no pattern holds the
 * event loop; the syntax and the texts of its errors are Go's. The engine loads with the first
 * schema that has a pattern.
 */

import { keepNewest } from "@quorate/host";
import { textOf } from "@quorate/kube-storage";
import type { RE2JS } from "re2js";

/** A pattern that matches anywhere in a text. */
export interface Pattern {
  /** Throws PatternError for a text that is too long for the pattern. */
  test(text: string): boolean;
  /** The first texts that match; throws as `test` does. @param limit less than 0: all */
  find(text: string, limit: number): string[];
}

/** Compiled patterns kept; the one not used for longest goes first. */
export const MAX_CACHED_PATTERNS = 1024;
/** A longer pattern is refused: its program would take memory and time out of proportion. */
export const MAX_PATTERN_LENGTH = 16_384;

/**
 * Characters of a text, times instructions of a pattern, that one match may visit: some 10 ms for
 * usual patterns, 0.3 s for the worst ones.
 */
export const MAX_MATCH_WORK = 20_000_000;

const TOO_LARGE = "error parsing regexp: expression too large";

/** A pattern that is no regular expression. Its message is Go's. */
export class PatternError extends SyntaxError {}

/** Compiles patterns; see `loadPatterns`. */
export class Patterns {
  readonly #engine: typeof RE2JS;
  readonly #compiled = new Map<string, Pattern>();

  constructor(engine: typeof RE2JS) {
    this.#engine = engine;
  }

  /** Patterns that are kept. */
  get size(): number {
    return this.#compiled.size;
  }

  /** Throws PatternError. */
  compile(source: string): Pattern {
    const present = this.#compiled.get(source);
    if (present !== undefined) {
      this.#compiled.delete(source);
      this.#compiled.set(source, present);
      return present;
    }
    const pattern = this.#parse(source);
    this.#compiled.set(source, pattern);
    keepNewest(this.#compiled, MAX_CACHED_PATTERNS);
    return pattern;
  }

  /** Whether `compile` costs nothing. */
  has(source: string): boolean {
    return this.#compiled.has(source);
  }

  #parse(source: string): Pattern {
    if (source.length > MAX_PATTERN_LENGTH) throw new PatternError(TOO_LARGE);
    try {
      return new CompiledPattern(this.#engine.compile(source));
    } catch (error) {
      throw new PatternError(textOf(error));
    }
  }
}

class CompiledPattern implements Pattern {
  readonly #engine: RE2JS;
  readonly #maxLength: number;

  constructor(engine: RE2JS) {
    this.#engine = engine;
    this.#maxLength = Math.floor(MAX_MATCH_WORK / Math.max(engine.programSize(), 1));
  }

  test(text: string): boolean {
    this.#check(text);
    return this.#engine.test(text);
  }

  find(text: string, limit: number): string[] {
    this.#check(text);
    const matcher = this.#engine.matcher(text);
    const found: string[] = [];
    while ((limit < 0 || found.length < limit) && matcher.find()) found.push(matcher.group() ?? "");
    return found;
  }

  #check(text: string): void {
    if (text.length <= this.#maxLength) return;
    throw new PatternError(`a text of ${text.length} characters is too long for this pattern`);
  }
}

let loaded: Promise<Patterns> | undefined;

/** Loads the engine once. */
export function loadPatterns(): Promise<Patterns> {
  loaded ??= import("re2js").then((module) => new Patterns(module.RE2JS));
  return loaded;
}
