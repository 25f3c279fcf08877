/**
 * The pages of the documentation site, by their paths in the repository and on the site:
 *
 *     docs/README.md              index.md
 *     docs/SHELF/NAME.md          SHELF/NAME.md
 *     docs/pictures/NAME          public/pictures/NAME
 *     README.md, CONTRIBUTING.md  readme.md, contributing.md
 *     packages/NAME/README.md     packages/NAME.md
 *     the npm packages' exports   reference/api-NAME.md
 *
 * A link to another file of the repository becomes its text, as in a release.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { LINK } from "../release/documents.ts";
import { REFERENCES, referencePages } from "./reference.ts";

/** The files of the site, from the repository's root to the site's source. */
export function sitePages(root: string): ReadonlyMap<string, string> {
  const pages = new Map([
    ["README.md", "readme.md"],
    ["CONTRIBUTING.md", "contributing.md"],
  ]);
  for (const path of readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).sort())
    if (path.endsWith(".md")) pages.set(`docs/${path}`, path === "README.md" ? "index.md" : path);
    else if (/\.(?:json|png|svg)$/.test(path)) pages.set(`docs/${path}`, `public/${path}`);
  for (const name of readdirSync(join(root, "packages")).sort()) {
    const path = `packages/${name}/README.md`;
    if (existsSync(join(root, path))) pages.set(path, `packages/${name}.md`);
  }
  return pages;
}

/** Writes the source of the site to a directory. */
export function writeSource(root: string, directory: string): void {
  const pages = sitePages(root);
  for (const [path, target] of pages) {
    const content = readFileSync(join(root, path));
    const file = join(directory, target);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(
      file,
      path.endsWith(".md") ? withSiteLinks(path, content.toString("utf8"), pages) : content,
    );
  }
  for (const { target, text } of referencePages()) writeFileSync(join(directory, target), text);
}

/** A page whose links lead to where their targets are on the site. */
function withSiteLinks(path: string, text: string, pages: ReadonlyMap<string, string>): string {
  return text.replace(
    LINK,
    (link: string, mark: string, words: string, target: string, anchor = "") => {
      if (target === "" || /^[a-z]+:/.test(target)) return link;
      const there = pages.get(posix.normalize(posix.join(posix.dirname(path), target)));
      if (there === undefined) return words;
      return `${mark}[${words}](/${there.replace(/^public\//, "")}${anchor})`;
    },
  );
}

export interface SidebarItem {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: SidebarItem[];
}

/** The shelf as a sidebar: the sections of docs/README.md with the titles of their pages. */
export function sidebar(root: string): SidebarItem[] {
  const shelf = readFileSync(join(root, "docs/README.md"), "utf8");
  const sections = shelf.split(/^## /m).slice(1);
  const packages = [...sitePages(root)].filter(([path]) => path.startsWith("packages/"));
  return [
    { text: "Start", items: [item("README.md"), item("CONTRIBUTING.md")] },
    ...sections.map((section) => {
      const text = section.slice(0, section.indexOf("\n"));
      const items = listed(section).map((path) => item(path));
      if (text === "Reference") items.push(...REFERENCES);
      return { text, collapsed: false, items };
    }),
    ...(packages.length === 0
      ? []
      : [{ text: "Packages", collapsed: true, items: packages.map(([path]) => item(path)) }]),
  ];

  function listed(text: string, from = "docs"): string[] {
    const links = [...text.matchAll(LINK)].map(({ 3: target }) => `${from}/${target}`);
    return links.filter((path) => path.endsWith(".md") && !path.includes(".."));
  }

  function item(path: string): SidebarItem {
    const text = readFileSync(join(root, path), "utf8");
    const title = /^# (.*)$/m.exec(text)?.[1]?.replaceAll("`", "") ?? path;
    const link = `/${sitePages(root)
      .get(path)!
      .replace(/(?:^|\/)index\.md$|\.md$/, "")}`;
    if (path !== "docs/operate/security.md") return { text: title, link };
    const items = listed(text.slice(0, text.indexOf("\n## ")), "docs/operate").map((one) =>
      item(one),
    );
    return { text: title, link, collapsed: true, items };
  }
}
