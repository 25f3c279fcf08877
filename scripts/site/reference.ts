/**
 * The reference of the npm packages: a page each, with every export, its comment, and its
 * declaration with the comments of its parts.
 */
import { defined } from "@quorate/proto";
import { type Declared, publicApi } from "../release/api-report.ts";
import { declarations, libraries } from "../release/library.ts";

/** A page of the reference. */
export interface ReferencePage {
  readonly name: string;
  /** Its file on the site. */
  readonly target: string;
  readonly text: string;
  /** Exports without a comment. */
  readonly undocumented: readonly string[];
}

const SECTIONS: readonly (readonly [kind: string, title: string])[] = [
  ["function", "Functions"],
  ["class", "Classes"],
  ["interface", "Interfaces"],
  ["type", "Types"],
  ["const", "Values"],
];
/** The packages that a program imports, with the names of their pages. */
const PAGES: ReadonlyMap<string, string> = new Map([
  ["@quorate/client", "client"],
  ["quorate", "quorate"],
  ["@quorate/testing", "testing"],
]);

/** The pages' titles and links, for the sidebar. */
export const REFERENCES: readonly { readonly text: string; readonly link: string }[] = [
  ...PAGES,
].map(([name, page]) => ({ text: titleOf(name), link: `/reference/api-${page}` }));

/** The pages, from the sources as they are. It compiles the declarations of all of them. */
export function referencePages(): readonly ReferencePage[] {
  const chosen = [...PAGES].map(([name, page]) => {
    const found = libraries.find((library) => library.name === name);
    return { name, page, sources: defined(found?.entries["index"], name) };
  });
  const entries = Object.fromEntries(chosen.map(({ page, sources }) => [page, sources]));
  const files = declarations({ entries });
  return chosen.map(({ name, page }) => {
    const isClients = (path: string): boolean => path.startsWith("types/packages/client/");
    const { declared } = publicApi(
      files,
      `types/${page}.d.ts`,
      page === "client" ? undefined : isClients,
    );
    const exported = declared.filter((one) => one.exported !== undefined);
    return {
      name,
      target: `reference/api-${page}.md`,
      text: pageOf(name, page === "client", declared),
      undocumented: exported.filter(({ doc }) => doc === "").map((one) => one.name),
    };
  });
}

function titleOf(name: string): string {
  return `Reference of ${name}`;
}

function pageOf(name: string, isClient: boolean, declared: readonly Declared[]): string {
  const more = isClient
    ? ""
    : " What it exports of the client is on [the client's page](api-client.md).";
  const parts = [`# ${titleOf(name)}`, `Every export, as its declaration says it.${more}`];
  for (const [kind, title] of SECTIONS) {
    const ofKind = declared.filter((one) => one.exported !== undefined && one.kind === kind);
    if (ofKind.length > 0) parts.push(`## ${title}`, ...ofKind.map(entryOf));
  }
  const named = declared.filter((one) => one.exported === undefined);
  if (named.length > 0)
    parts.push(
      "## Named by these",
      "Types that a program meets and cannot import by name.",
      ...named.map(entryOf),
    );
  return `${parts.join("\n\n")}\n`;
}

function entryOf({ exported, name, doc, commented }: Declared): string {
  const title = `### ${exported ?? name}`;
  // A comment is text: what looks like a tag of HTML is none. In code it is shown as it is.
  const words = doc
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 === 1 ? part : part.replace(/</g, "&lt;")))
    .join("")
    .replace(/^@(\w+) /gm, "\n\n*$1* ");
  const code = `\`\`\`ts\n${commented}\n\`\`\``;
  return [title, words, code].filter((part) => part !== "").join("\n\n");
}
