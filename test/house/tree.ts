/**
 * The files that the house rules look at. A rule is a function from such a list to findings, so
 * that a test can plant a violation.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One file of the repository: its path from the root with forward slashes, and its text. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** One broken rule: `path` or `path:line`, and what is wrong there. */
export interface Finding {
  readonly where: string;
  readonly what: string;
}

const skippedDirs = new Set(["node_modules", ".git", ".quorate", "dist", "coverage", "gen"]);
const readExtensions = [
  ".ts",
  ".js",
  ".mjs",
  ".sh",
  ".py",
  ".json",
  ".md",
  ".txt",
  ".proto",
  ".yml",
  ".yaml",
  ".tpl",
  ".service",
  ".timer",
  ".env",
  ".svg",
];
/** Text files without an extension. */
const readNames = /^(?:\.ci\/run|deploy\/Containerfile|deploy\/package\/debian\/\w+)$/;

/** Where the repository starts. */
export const repositoryRoot = join(import.meta.dirname, "../..");

/**
 * Every text file of ours below `root`, generated code and dependencies left out, in path order.
 * @param below a folder of it alone, which may be one of generated code
 */
export function readTree(root: string = repositoryRoot, below = ""): SourceFile[] {
  const files: SourceFile[] = [];
  const walk = (dir: string): void => {
    for (const entry of readdirSync(join(root, dir), { withFileTypes: true })) {
      const path = dir === "" ? entry.name : `${dir}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!skippedDirs.has(entry.name) && !entry.name.endsWith(".quorate")) walk(path);
      } else if (
        readExtensions.some((extension) => path.endsWith(extension)) ||
        readNames.test(path)
      ) {
        files.push({ path, text: readFileSync(join(root, path), "utf8") });
      }
    }
  };
  walk(below);
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** True for TypeScript and JavaScript sources. */
export function isCode(file: SourceFile): boolean {
  return /\.(ts|js|mjs)$/.test(file.path);
}

/** The 1-based line of a character offset. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1))
    line++;
  return line;
}

/** Findings as lines for an assertion message. */
export function formatFindings(findings: readonly Finding[]): string {
  return findings.map((finding) => `${finding.where}: ${finding.what}`).join("\n");
}
