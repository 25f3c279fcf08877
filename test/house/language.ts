/**
 * The project's vocabulary as a rule: words that docs/GLOSSARY.md replaces, in identifiers,
 * comments, docs, log lines, errors and help.
 *
 * A word is found on its own and inside an identifier: "told" finds `told`, `#told`, `toldOf`,
 * `wasTold` and `TOLD`, but not `toldest`.
 */
import { type Finding, lineAt, type SourceFile } from "./tree.ts";

interface Term {
  /** Words, in small letters. A phrase holds spaces and is found over line breaks too. */
  readonly words: readonly string[];
  readonly instead: string;
  /** What may follow the word (a particle of another verb, as in "gives up"). */
  readonly before?: RegExp;
}

/** The banned words, each with what to write instead. Lower-case; a word covers its capitals. */
export const terms: readonly Term[] = [
  { words: ["room", "rooms"], instead: "package; space or capacity" },
  { words: ["door", "doors"], instead: "entry point" },
  {
    words: ["told", "tell", "tells", "telling"],
    instead: "notified, called with, returns, reports, or the thing that is known",
  },
  { words: ["twin", "twins"], instead: "fake, in-memory implementation, reference or model" },
  { words: ["anew"], instead: "again, from the start; rebuilds" },
  {
    words: ["nobody", "somebody", "whoever", "whomever"],
    instead: "the caller, client, member or operator that is meant; idle",
  },
  { words: ["whom"], instead: "the noun that is meant" },
  { words: ["folder", "folders"], instead: "directory" },
  {
    words: ["gives", "gave"],
    instead: "returns, yields, sets, releases (of a function); writes, prints",
    before: /^\s+(?:up|way|rise)\b/,
  },
  { words: ["reign", "reigns"], instead: "term, epoch or leadership" },
  { words: ["stranger", "strangers"], instead: "unknown client, peer or process" },
  {
    words: ["asks again", "asked again", "ask again", "asking again"],
    instead: "retries, retried",
  },
  { words: ["world in a box", "door to the world"], instead: "simulator; platform interfaces" },
  {
    words: [
      "misguide",
      "furnish",
      "farewell",
      "settling",
      "endings",
      "go on alone",
      "say farewell",
      "hurt wires",
      "made out for",
      "say who reads",
      "say death",
      "what is there",
    ],
    instead: "a name that says what the function does, in the field's terms",
  },
];

/** Texts that hold a banned word and stay: they are dictated from outside. */
export const dictated: readonly RegExp[] = [];

/** Files the rule leaves out: they list the words. */
const listing = new Set([
  "docs/GLOSSARY.md",
  "test/house/language.ts",
  "test/house/language.test.ts",
]);

/** A pattern for one word or phrase, alone or as a part of an identifier. */
function patternOf(phrase: string): string {
  const words = phrase.split(" ");
  const title = (word: string): string => word[0].toUpperCase() + word.slice(1);
  const camel = words.map(title).join("");
  const lower = words[0] + words.slice(1).map(title).join("");
  const spaced = words.map((word) => `[${word[0]}${title(word)[0]}]${word.slice(1)}`);
  const upper = words.map((word) => word.toUpperCase());
  return [
    // A comment goes on in the next line behind a star, slashes or a hash sign.
    `(?<![A-Za-z])${spaced.join("(?:[\\s_-]|\\n\\s*(?:\\*|//|#))+")}(?![a-z])`,
    `(?<![A-Z])${camel}(?![a-z])`,
    `(?<![A-Za-z])${lower}(?![a-z])`,
    `(?<![A-Za-z])${upper.join("[\\s_-]+")}(?![A-Za-z])`,
  ].join("|");
}

const patterns = terms.map((term) => ({
  term,
  pattern: new RegExp(term.words.map(patternOf).join("|"), "g"),
}));

/** Banned words, each as file:line with what to write instead. */
export function checkLanguage(files: readonly SourceFile[]): Finding[] {
  return files
    .filter((file) => !listing.has(file.path) && !file.path.endsWith("package-lock.json"))
    .flatMap(findingsIn);
}

function findingsIn(file: SourceFile): Finding[] {
  // The texts from outside become spaces, so that lines stay as they are.
  const text = dictated.reduce(
    (kept, one) => kept.replace(one, (found) => found.replace(/\S/g, " ")),
    file.text,
  );
  const found: { at: number; what: string }[] = [];
  for (const { term, pattern } of patterns) {
    for (const match of text.matchAll(pattern)) {
      const end = match.index + match[0].length;
      if (term.before?.test(text.slice(end, end + 16))) continue;
      const word = match[0].replace(/[\s*/#]+/g, " ");
      found.push({ at: match.index, what: `"${word}": write ${term.instead}` });
    }
  }
  return found
    .sort((a, b) => a.at - b.at)
    .map(({ at, what }) => ({ where: `${file.path}:${lineAt(text, at)}`, what }));
}
