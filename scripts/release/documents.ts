/**
 * The pages of a release, with what they link to: README.md, docs/ with its pictures, and deploy/
 * (alerts, dashboard, manifests, chart, units). The sources are not in a release: a link to them
 * becomes its text.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { root } from "./programs.ts";
import type { Entry } from "./tar.ts";

/**
 * Files that a release does not need: texts that pictures are drawn from, and what makes packages.
 */
const LEFT_OUT = /^docs\/pictures\/.*\.txt$|^deploy\/package\//;
/** A link in Markdown: its mark, its text, the path or URL, the anchor. */
export const LINK = /(!?)\[([^[\]]*)\]\(([^()[\]#\s]*)(#[^()[\]#\s]*)?\)/g;

/** Files by path from the release's directory of documents. */
export function documents(): Entry[] {
  const paths = ["README.md", ...filesIn("docs"), ...filesIn("deploy")]
    .filter((path) => !LEFT_OUT.test(path))
    .sort();
  const there = new Set(paths.flatMap((path) => [path, ...directoriesOf(path)]));
  return paths.map((path) => {
    const content = readFileSync(join(root, path));
    return {
      path,
      mode: 0o644,
      content: path.endsWith(".md")
        ? Buffer.from(withoutDeadLinks(path, content.toString("utf8"), there))
        : content,
    };
  });
}

/**
 * The pages of an npm package by path: its README, and in docs/ what that links to.
 * @param path of the page that is the README
 */
export function libraryPages(path: string): ReadonlyMap<string, string> {
  const page = readFileSync(join(root, path), "utf8");
  const linked = new Set(linksOf(path, page));
  const readme = page.replace(LINK, (link: string, _mark, _words, target: string) =>
    target === "" ? link : link.replace(`](${target}`, `](${targetOf(path, target)}`),
  );
  const others = [...linked].map((path): [string, string] => {
    const text = readFileSync(join(root, path), "utf8");
    return [path, path.endsWith(".md") ? withoutDeadLinks(path, text, linked) : text];
  });
  return new Map([["README.md", readme], ...others]);
}

function filesIn(directory: string): string[] {
  return readdirSync(join(root, directory), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

function directoriesOf(path: string): string[] {
  const directory = dirname(path);
  return directory === "." ? [] : [directory, ...directoriesOf(directory)];
}

/**
 * Where each relative link of a page leads, from the directory of documents; links inside the page
 * are not among them.
 */
export function linksOf(path: string, text: string): string[] {
  return [...text.matchAll(LINK)]
    .filter(({ 3: target }) => !isElsewhere(target))
    .map(({ 3: target }) => targetOf(path, target));
}

/** No file of the documents: an anchor of the page, or a URL. */
function isElsewhere(target: string): boolean {
  return target === "" || /^[a-z]+:/.test(target);
}

function targetOf(path: string, target: string): string {
  return posix.normalize(posix.join(posix.dirname(path), target)).replace(/\/$/, "");
}

function withoutDeadLinks(path: string, text: string, there: ReadonlySet<string>): string {
  return text.replace(LINK, (link: string, _mark: string, words: string, target: string) =>
    isElsewhere(target) || there.has(targetOf(path, target)) ? link : words,
  );
}
