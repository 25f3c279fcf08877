/**
 * Conditional requests (RFC 9110 section 13): a key's ETag is its mod revision.
 *
 *     If-Match: "7"         the key is at revision 7
 *     If-Match: *           it exists
 *     If-None-Match: "7"    it is at another revision, or does not exist
 *     If-None-Match: *      it does not exist
 *
 * A revision may be written without quotes. For writes, the conditions become comparisons of a
 * transaction.
 */
import type { HttpHead } from "@quorate/host";
import { Compare, Compare_CompareResult, Compare_CompareTarget, defined } from "@quorate/proto";
import { shown } from "./key-path.ts";
import { Problem } from "./problems.ts";

/** Entity tags of one header. */
export const MAX_TAGS = 32;

/** The tags of a header: any, or those of the list. */
type Tags = "any" | readonly Tag[];

interface Tag {
  /** 0: no key ever has this tag. */
  readonly revision: number;
  readonly isWeak: boolean;
}

/** One tag of a list, or none. */
const TAG = /(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"|(\d{1,16}))?/y;
const BLANKS = /[ \t]*/y;

/** The ETag of a key at a revision. */
export function etagOf(modRevision: number): string {
  return `"${modRevision}"`;
}

/** The conditions of a request. */
export class Preconditions {
  readonly #match: Tags | undefined;
  readonly #noneMatch: Tags | undefined;

  /** @throws Problem bad-precondition */
  constructor({ headers }: Pick<HttpHead, "headers">) {
    this.#match = tagsOf(headers, "if-match");
    this.#noneMatch = tagsOf(headers, "if-none-match");
  }

  get isEmpty(): boolean {
    return this.#match === undefined && this.#noneMatch === undefined;
  }

  /**
   * What a read comes to.
   * @param revision of the key's last change; 0: it does not exist
   */
  verdict(revision: number): "passed" | "failed" | "not modified" {
    if (this.#match !== undefined && !matches(this.#match, revision, "strong")) return "failed";
    if (this.#noneMatch !== undefined && matches(this.#noneMatch, revision, "weak"))
      return "not modified";
    return "passed";
  }

  /**
   * Revisions of which the key must have one for a write; undefined: any, or none at all, as
   * `compares` says.
   */
  get candidates(): readonly number[] | undefined {
    if (this.#match === undefined || this.#match === "any") return undefined;
    return this.#match
      .filter(({ revision, isWeak }) => revision > 0 && !isWeak)
      .map(({ revision }) => revision);
  }

  /**
   * The comparisons of a write.
   * @param candidate one of `candidates`
   */
  compares(key: Uint8Array, candidate: number | undefined): Compare[] {
    const { EQUAL, NOT_EQUAL, GREATER } = Compare_CompareResult;
    const compares: Compare[] = [];
    if (candidate !== undefined) compares.push(modCompare(key, EQUAL, candidate));
    else if (this.#match === "any") compares.push(modCompare(key, GREATER, 0));
    if (this.#noneMatch === "any") compares.push(modCompare(key, EQUAL, 0));
    else
      for (const { revision } of this.#noneMatch ?? [])
        if (revision > 0) compares.push(modCompare(key, NOT_EQUAL, revision));
    return compares;
  }

  /** Why a write was refused, in words; the key is at `revision` (0: it does not exist). */
  failure(revision: number): string {
    const state = revision === 0 ? "the key does not exist" : `the key is at revision ${revision}`;
    const wanted: string[] = [];
    if (this.#match !== undefined) wanted.push(`If-Match requires ${wordsOf(this.#match)}`);
    if (this.#noneMatch !== undefined)
      wanted.push(`If-None-Match excludes ${wordsOf(this.#noneMatch)}`);
    return `${state}, and ${wanted.join(", and ")}`;
  }
}

function modCompare(key: Uint8Array, result: Compare_CompareResult, revision: number): Compare {
  return Compare.create({
    key,
    result,
    target: Compare_CompareTarget.MOD,
    targetUnion: { case: "modRevision", value: revision },
  });
}

function matches(tags: Tags, revision: number, comparison: "strong" | "weak"): boolean {
  if (revision === 0) return false;
  if (tags === "any") return true;
  return tags.some((tag) => tag.revision === revision && (comparison === "weak" || !tag.isWeak));
}

function wordsOf(tags: Tags): string {
  if (tags === "any") return "any that exists";
  const revisions = tags.map(({ revision, isWeak }) =>
    revision === 0 ? "a tag that is no revision" : `${isWeak ? "the weak " : ""}${revision}`,
  );
  return revisions.join(" or ");
}

function tagsOf(headers: ReadonlyMap<string, string>, name: string): Tags | undefined {
  const text = headers.get(name);
  if (text === undefined) return undefined;
  if (text.trim() === "*") return "any";
  const tags: Tag[] = [];
  for (let at = 0; at <= text.length; at++) {
    at = behind(BLANKS, text, at);
    TAG.lastIndex = at;
    const [{ length }, weak, quoted, bare] = defined(TAG.exec(text), "a match");
    at = behind(BLANKS, text, at + length);
    if (at < text.length && text[at] !== ",")
      throw new Problem("bad-precondition", `${name}: ${shown(text)} is no list of tags`);
    const revision = quoted ?? bare;
    if (revision !== undefined) {
      if (bare !== undefined && Number(bare) === 0) throw zeroProblem(name);
      tags.push({ revision: revisionOf(revision), isWeak: weak !== undefined });
    }
    if (tags.length > MAX_TAGS)
      throw new Problem("bad-precondition", `${name} has more than ${MAX_TAGS} tags`, "send fewer");
  }
  if (tags.length > 0) return tags;
  throw new Problem("bad-precondition", `${name} has no tag`);
}

/** The offset behind what a sticky pattern, which may be empty, matches at `at`. */
function behind(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  pattern.exec(text);
  return pattern.lastIndex;
}

function zeroProblem(name: string): Problem {
  const right = "for a key that must not exist, send If-None-Match: *";
  return new Problem("bad-precondition", `${name}: no key is at revision 0`, right);
}

function revisionOf(text: string): number {
  const number = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(number) ? number : 0;
}
