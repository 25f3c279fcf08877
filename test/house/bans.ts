/**
 * What pure code must not touch: time, randomness, the process and Node's modules come in through
 * the host's interfaces.
 */
import { importsOfFile } from "./imports.ts";
import { codeOnly } from "./scan.ts";
import { type Finding, isCode, lineAt, type SourceFile } from "./tree.ts";

interface Ban {
  readonly name: string;
  readonly pattern: RegExp;
  readonly instead: string;
}

const bans: readonly Ban[] = [
  {
    name: "timer",
    pattern:
      /(?<![.\w$])(?:setTimeout|setInterval|setImmediate|clearTimeout|clearInterval|clearImmediate)\b/g,
    instead: "the host's Clock",
  },
  {
    name: "Date",
    pattern: /\bDate\.now\b|\bnew Date\(\s*\)/g,
    instead: "a time that the driver passes in",
  },
  {
    name: "performance",
    pattern: /(?<![.\w$])performance\.(?:now|timeOrigin)\b/g,
    instead: "a time that the driver passes in",
  },
  {
    name: "randomness",
    pattern: /\bMath\.random\b|\bcrypto\.(?:getRandomValues|randomUUID|randomBytes)\b/g,
    instead: "the host's Random",
  },
  {
    name: "process",
    pattern: /(?<![.\w$"'])process\b(?=\s*[.[)])/g,
    instead: "a value that the main file passes in",
  },
  {
    name: "global",
    pattern: /\bglobalThis\.(?:process|setTimeout|setInterval|Date|Buffer|fetch)\b/g,
    instead: "the host's interfaces",
  },
  { name: "fetch", pattern: /(?<![.\w$])fetch\(/g, instead: "the host's interfaces" },
];

const buffer: Ban = {
  name: "Buffer",
  pattern: /(?<![.\w$])Buffer\b/g,
  instead: "the helpers of @quorate/proto's bytes",
};
const consoleBan: Ban = {
  name: "console",
  pattern: /(?<![.\w$])console\.(?:log|info|warn|error|debug|trace)\b/g,
  instead: "the host's Logger",
};

/** The one pure file that may name Buffer: it wraps it for all others. */
const bufferHome = "packages/proto/src/wire/bytes.ts";

/**
 * Packages without pure code: the command lines, and the simulator, whose scheduler uses the real
 * event loop.
 */
const effectPackages = new Set(["cli", "ctl", "sim"]);

/** True where time, randomness and node: must not appear: a package's entry point and src/. */
export function isPure(path: string): boolean {
  const match = /^packages\/([\w-]+)\/(?:index\.ts|src\/)/.exec(path);
  return match !== null && !effectPackages.has(match[1]);
}

/**
 * Banned names and imports in pure files; console, and node:http by an import, in any package but
 * those.
 */
export function checkBans(files: readonly SourceFile[]): Finding[] {
  return files.filter(isCode).flatMap((file) => {
    const findings: Finding[] = [];
    const code = codeOnly(file.text);
    const look = (ban: Ban): void => {
      for (const match of code.matchAll(ban.pattern)) {
        findings.push({
          where: `${file.path}:${lineAt(file.text, match.index)}`,
          what: `${match[0]} (${ban.name}): use ${ban.instead}`,
        });
      }
    };
    if (isPure(file.path)) {
      for (const ban of bans) look(ban);
      if (file.path !== bufferHome) look(buffer);
      for (const one of importsOfFile(file)) {
        if (one.specifier.startsWith("node:"))
          findings.push({
            where: `${file.path}:${one.line}`,
            what: `imports ${one.specifier} in pure code`,
          });
      }
    }
    if (/^packages\/(?!cli\/|ctl\/|sim\/)[\w-]+\/(?:src|node)\//.test(file.path)) {
      look(consoleBan);
      for (const { specifier, typeOnly, line } of importsOfFile(file)) {
        if (specifier !== "node:http" || typeOnly) continue;
        findings.push({
          where: `${file.path}:${line}`,
          what: "imports node:http, and Node's fetch with it: use the host's http1.ts",
        });
      }
    }
    return findings;
  });
}
