/**
 * Regular expressions of users. They run in RE2's way, in linear time, so that no pattern holds the
 * event loop; the syntax and the texts of its errors are Go's. The engine loads with the first
 * schema that has a pattern.
 */
import type { RE2JS } from "re2js";

/** A pattern that matches anywhere in a text. */
export interface Pattern {
  test(text: string): boolean;
}

/** Compiled patterns kept; the one not used for longest goes first. */
export const MAX_CACHED_PATTERNS = 1024;
/** A longer pattern is refused: its program would take memory and time out of proportion. */
export const MAX_PATTERN_LENGTH = 16_384;

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
    if (this.#compiled.size >= MAX_CACHED_PATTERNS) {
      this.#compiled.delete(this.#compiled.keys().next().value!);
    }
    this.#compiled.set(source, pattern);
    return pattern;
  }

  /** The library's own object, for functions that need the texts that match. */
  engine(source: string): RE2JS {
    if (source.length > MAX_PATTERN_LENGTH) throw new PatternError(TOO_LARGE);
    return this.#engine.compile(source);
  }

  #parse(source: string): Pattern {
    if (source.length > MAX_PATTERN_LENGTH) {
      throw new PatternError(TOO_LARGE);
    }
    try {
      const compiled = this.#engine.compile(source);
      return { test: (text) => compiled.test(text) };
    } catch (error) {
      throw new PatternError(error instanceof Error ? error.message : String(error));
    }
  }
}

let loaded: Promise<Patterns> | undefined;

/** Loads the engine once. */
export function loadPatterns(): Promise<Patterns> {
  loaded ??= import("re2js").then((module) => new Patterns(module.RE2JS));
  return loaded;
}
