// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the scanner is tested on templates inside strings
/** Each house rule finds a violation planted for it, and leaves clean code alone. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkBans } from "./bans.ts";
import { checkDependencies } from "./dependencies.ts";
import { checkDirections, checkEntryPoints } from "./directions.ts";
import { checkErrorClasses, checkInvariants } from "./errors.ts";
import { checkCycles, checkDeadFiles, checkFolderCycles, checkMissing } from "./graph.ts";
import { checkCasts, checkPackedLiterals } from "./packed.ts";
import { clean, finds } from "./planted.ts";
import { checkRegexes } from "./regexes.ts";
import { codeOnly, regExpLiterals } from "./scan.ts";
import { checkStaleNames } from "./stale.ts";
import { checkLeftovers, checkLineWidth } from "./text.ts";
import { checkTlsContexts } from "./tls-contexts.ts";

describe("scanner", () => {
  test("blanks comments, strings, templates and regular expressions, and keeps offsets", () => {
    const text = 'a("x // y"); // z\n/* q */ b(`t ${c("u")} {v}`); d = /[/"]w/.test(e) / f;';
    const code = codeOnly(text);
    assert.equal(code.length, text.length);
    assert.equal(code.replace(/\s+/g, ""), 'a("");b(`${c("")}`);d=//.test(e)/f;');
  });

  test("braces inside a template's expression do not end it", () => {
    assert.equal(codeOnly("`a${f({ b: 1 })}c`;d").replace(/\s+/g, ""), "`${f({b:1})}`;d");
  });
});

describe("regular expressions", () => {
  const at = "packages/wal/src/a.ts";
  test("the scanner lists them, with their flags", () => {
    const text =
      '#!/usr/bin/env node\nlet a = b / c; // /no/\nd("/no/", /[/"]w/gi, `${/x/y}/no/`);';
    const found = regExpLiterals(text).map(({ source, flags }) => [source, flags]);
    assert.deepEqual(found, [
      ['[/"]w', "gi"],
      ["x", "y"],
    ]);
  });
  test("quadratic by its own steps, by its search for a start, exponential", () => {
    const faults: readonly (readonly [pattern: string, what: RegExp])[] = [
      ["/^Bearer,\\s*(.*?)\\s*$/", /3rd degree polynomial/],
      ["/[\\d_]*\\d[\\d_]*$/", /3rd degree polynomial/],
      ["/[ \\t]*,[ \\t]*/g", /2nd degree polynomial/],
      ["/^\\/+|\\/+$/g", /2nd degree polynomial/],
      ["/\\s+$/", /2nd degree polynomial/],
      ["/^(a|a)*$/", /exponential/],
      ["/^(.*),\\1$/", /not proved linear: .*back-reference/],
    ];
    for (const [pattern, what] of faults)
      finds(checkRegexes, { [at]: `let a;\nconst b = ${pattern};` }, `${at}:2`, what);
  });
  test("a pattern of constants, and one that is known only when it runs", () => {
    const text = 'const N = "a*";\nnew RegExp(`${N}${N}$`, "g");';
    finds(checkRegexes, { [at]: text }, `${at}:2`, /\/a\*a\*\$\/g is 3rd degree polynomial/);
    const open = "let a;\nexport const f = (x) => new RegExp(x);";
    finds(checkRegexes, { [at]: open }, `${at}:2`, /known only when it runs/);
  });
  test("linear ones, and those of tests", () => {
    clean(checkRegexes, {
      [at]: 'const b = /^[a-z]+(?:,[a-z]+)*$/;\nconst N = "x{1,3}";\nnew RegExp(`^${N}$`);',
      "packages/wal/test/a.ts": "const b = /a*b/;",
    });
  });
});

describe("literals", () => {
  const at = "packages/wal/src/a.ts";
  test("spread into a literal or a call", () => {
    for (const text of [
      "f({ a, ...{ b, c } });",
      "f({ ...{ b, c: { d } }, a });",
      "f({ ...{\n  b,\n},\n});",
      "f([...[a, b], c]);",
      "f(...[a, [b]]);",
      "f([...([a, b] as const)]);",
      "f([...[a, b] as const]);",
    ])
      finds(checkPackedLiterals, { [at]: `let a;\n${text}` }, `${at}:2`, /write its parts there/);
  });
  test("values that are spread, and literals with a method", () => {
    clean(checkPackedLiterals, {
      [at]: "f({ ...a, ...(b ? { c } : {}), ...[a, b].map(g) }, ...[...a].sort(), ...([a] as const).map(g));",
      "packages/wal/src/b.ts": "function f(...[a, b]: T) {}\nconst text = '...{ a }'; // ...{ a }",
    });
  });
});

describe("casts", () => {
  test("as unknown as, outside of the listed files and tests", () => {
    const text = "let a;\nconst b = a as unknown as B; // as unknown as";
    const at = "packages/wal/src/a.ts";
    finds(checkCasts, { [at]: text }, `${at}:2`, /as unknown as: give the value/);
    clean(checkCasts, {
      "packages/host/node/keyspace.ts": text,
      "packages/wal/test/a.ts": text,
      [at]: "const b = a as unknown;",
    });
  });
});

describe("errors", () => {
  const at = "packages/wal/src/a.ts";
  test("a class that extends Error itself", () => {
    finds(
      checkErrorClasses,
      { [at]: "let a;\nclass OddError extends Error {}" },
      `${at}:2`,
      /OddError extends Error/,
    );
    clean(checkErrorClasses, {
      [at]: 'class OddError extends CodedError<"Odd"> {}',
      "packages/wal/test/a.ts": "class Mine extends Error {}",
    });
  });
  test("an invariant without its one place", () => {
    const list = "packages/wal/src/invariants.ts";
    const text = 'export const invariants = {\n  "WAL-1": "x",\n};';
    finds(checkInvariants, { [list]: text }, list, /WAL-1 is enforced in no file/);
    const use = 'assert(a, "WAL-1");';
    finds(
      checkInvariants,
      { [list]: text, [at]: use, "packages/wal/src/b.ts": use },
      list,
      /enforced in .*a\.ts, .*b\.ts/,
    );
    clean(checkInvariants, { [list]: text, [at]: use });
  });
});

describe("TLS contexts", () => {
  const at = "packages/proxy/node/a.ts";
  test("a dial, a request or a context with options of its own", () => {
    for (const text of [
      'import { connect } from "node:tls";\nconnect({ ca });',
      'import { request } from "node:https";',
      'const { Agent } = await import("undici");',
      'const { connect } = process.getBuiltinModule("node:tls");',
    ])
      finds(checkTlsContexts, { [at]: text }, `${at}:1`, /opens TLS without tlsContext/);
    finds(
      checkTlsContexts,
      { [at]: "let a;\nconst b = { ...tlsContext({}), allowPartialTrustChain: false };" },
      `${at}:2`,
      /use packages\/host\/src\/tls-context/,
    );
    clean(checkTlsContexts, {
      [at]: 'import { connect } from "node:tls";\nconnect(tlsContext({ trusted }));',
      "packages/proxy/node/b.ts": 'import { checkServerIdentity } from "node:tls";',
      "packages/proxy/node/c.ts": 'import type { TLSSocket } from "node:tls";',
      "packages/proxy/test/d.ts": 'import { connect } from "node:tls";',
    });
  });
});

describe("directions", () => {
  const at = "packages/raft/src/a.ts";
  test("a package that may not be imported", () => {
    finds(
      checkDirections,
      { [at]: 'import { x } from "@quorate/store";' },
      `${at}:1`,
      /raft may not import store/,
    );
    finds(
      checkDirections,
      { "packages/ctl/src/a.ts": 'import { x } from "@quorate/server";' },
      "packages/ctl/src/a.ts:1",
      /may not import server/,
    );
  });
  test("over several lines, and as a re-export or a dynamic import", () => {
    finds(
      checkDirections,
      { [at]: 'let a;\nimport {\n  x,\n  y,\n} from "@quorate/wal";' },
      `${at}:2`,
      /may not import wal/,
    );
    finds(
      checkDirections,
      { [at]: 'export * from "@quorate/wal";' },
      `${at}:1`,
      /may not import wal/,
    );
    finds(
      checkDirections,
      { [at]: 'const a = await import("@quorate/wal");' },
      `${at}:1`,
      /may not import wal/,
    );
  });
  test("values where only types are allowed", () => {
    finds(
      checkDirections,
      { "packages/wal/src/a.ts": 'import { Entry } from "@quorate/raft";' },
      "packages/wal/src/a.ts:1",
      /only types/,
    );
    clean(checkDirections, {
      "packages/wal/src/a.ts": 'import type { Entry } from "@quorate/raft";',
    });
  });
  test("a package that can be taken out, by tests too", () => {
    const text = 'import { x } from "@quorate/kube-apiserver";';
    for (const path of ["packages/kube-storage/testing/a.ts", "packages/sim/src/a.ts", "test/a.ts"])
      finds(checkDirections, { [path]: text }, `${path}:1`, /only the program/);
    clean(checkDirections, {
      "packages/quorate/node/a.ts": text,
      "packages/kube-apiserver/test/a.ts": text,
    });
  });
  test("past an entry point", () => {
    finds(
      checkDirections,
      { [at]: 'import { x } from "../../proto/src/a.ts";' },
      `${at}:1`,
      /reaches into packages\/proto/,
    );
    finds(
      checkDirections,
      { [at]: 'import { x } from "@quorate/proto/src/a.ts";' },
      `${at}:1`,
      /not an entry point/,
    );
    finds(
      checkDirections,
      { "scripts/a.ts": 'import { x } from "../packages/proto/index.ts";' },
      "scripts/a.ts:1",
      /reaches into/,
    );
  });
  test("an entry point with effects from pure code, an entry point for tests from real code", () => {
    finds(
      checkDirections,
      { "packages/server/src/a.ts": 'import { x } from "@quorate/host/node";' },
      "packages/server/src/a.ts:1",
      /has effects/,
    );
    finds(
      checkDirections,
      { "packages/server/node/a.ts": 'import { x } from "@quorate/host/testing";' },
      "packages/server/node/a.ts:1",
      /for tests/,
    );
    clean(checkDirections, {
      "packages/server/node/a.ts": 'import { x } from "@quorate/host/node";',
    });
  });
  test("a file outside packages/, and sim from real code", () => {
    finds(
      checkDirections,
      { [at]: 'import { x } from "../../../test/support/a.ts";' },
      `${at}:1`,
      /outside packages/,
    );
    finds(
      checkDirections,
      { "packages/server/test/a.test.ts": 'import { x } from "@quorate/sim";' },
      "packages/server/test/a.test.ts:1",
      /import sim/,
    );
  });
  test("what is allowed", () => {
    clean(checkDirections, {
      [at]: 'import { x } from "@quorate/proto";\nimport { y } from "./b.ts";\n// import { z } from "@quorate/store";',
      "packages/raft/test/a.test.ts":
        'import { x } from "@quorate/server/node";\nimport { y } from "../src/a.ts";',
      "packages/rpc/test/tls.test.ts": 'import { x } from "../../../test/support/certs.ts";',
      "test/e2e/a.test.ts": 'import { x } from "@quorate/sim";',
    });
  });
});

describe("entry points", () => {
  const manifest = { "packages/raft/package.json": '{ "exports": { ".": "./index.ts" } }' };
  test("code without an entry point", () => {
    finds(
      checkEntryPoints,
      { ...manifest, "packages/raft/src/a.ts": "" },
      "packages/raft",
      /no index.ts/,
    );
  });
  test("a second entry point", () => {
    finds(
      checkEntryPoints,
      { "packages/raft/package.json": '{ "exports": { "./log": "./src/log.ts" } }' },
      "packages/raft/package.json",
      /not an entry point/,
    );
  });
  test("an entry point that declares something", () => {
    const entryPoint =
      '/** Words. */\nexport * from "./src/a.ts";\nexport {\n  b,\n} from "./src/b.ts";\n';
    clean(checkEntryPoints, { ...manifest, "packages/raft/index.ts": entryPoint });
    finds(
      checkEntryPoints,
      { ...manifest, "packages/raft/index.ts": `${entryPoint}export const x = 1;\n` },
      "packages/raft/index.ts",
      /export const x/,
    );
  });
});

describe("bans", () => {
  const at = "packages/store/src/a.ts";
  for (const [line, what] of [
    ["setTimeout(f, 1);", /timer/],
    ["const t = Date.now();", /Date/],
    ["const t = new Date();", /Date/],
    ["const t = performance.now();", /performance/],
    ["const t = Math.random();", /randomness/],
    ["process.exit(1);", /process/],
    ["globalThis.setTimeout(f);", /global/],
    ["await fetch(url);", /fetch/],
    ["const b = Buffer.alloc(1);", /Buffer/],
    ['import { readFileSync } from "node:fs";', /imports node:fs/],
    ["console.log(x);", /console/],
  ] as const) {
    test(line, () => finds(checkBans, { [at]: `\n${line}` }, `${at}:2`, what));
  }
  test("a name in a comment, a string or a longer name is no use of it", () => {
    clean(checkBans, {
      [at]: '// Date.now()\nconst a = "Math.random()";\nthis.clock.setTimeout(f);\nconst processed = inProcess;\n',
    });
  });
  test("places where effects live are free of it", () => {
    const text =
      'import "node:fs";\nsetTimeout(f, Date.now() + Math.random());\nprocess.exit(Buffer.alloc(1)[0]);\n';
    clean(checkBans, {
      "packages/host/node/a.ts": text,
      "packages/ctl/src/a.ts": text,
      "scripts/a.ts": text,
      "packages/raft/test/a.test.ts": text,
    });
    const server =
      'import type { Server } from "node:http";\nimport { createServer } from "node:http";\n';
    finds(
      checkBans,
      { "packages/rpc/node/a.ts": server },
      "packages/rpc/node/a.ts:2",
      /imports node:http/,
    );
    clean(checkBans, { "packages/ctl/src/a.ts": server, "packages/rpc/test/a.test.ts": server });
    finds(
      checkBans,
      { "packages/proto/src/wire/bytes.ts": "Buffer.alloc(1);\nprocess.exit();" },
      "packages/proto/src/wire/bytes.ts:2",
      /process/,
    );
  });
});

describe("graph", () => {
  test("a cycle through three files and an entry point, types included", () => {
    const texts = {
      "packages/raft/index.ts": 'export * from "./src/a.ts";',
      "packages/raft/src/a.ts": 'import { b } from "./b.ts";',
      "packages/raft/src/b.ts": 'import type { A } from "./a.ts";',
    };
    finds(checkCycles, texts, "packages/raft/src/a.ts", /a\.ts -> .*b\.ts -> .*a\.ts/);
    clean(checkCycles, { ...texts, "packages/raft/src/b.ts": "" });
  });
  test("folders that need each other, types aside", () => {
    const texts = {
      "packages/store/src/auth/a.ts": 'import { b } from "../lease/b.ts";',
      "packages/store/src/lease/b.ts": "",
      "packages/store/src/lease/c.ts": 'import { a } from "../auth/a.ts";',
      "packages/store/test/d.test.ts": 'import { a } from "../src/auth/a.ts";',
    };
    const where = "packages/store/src/auth";
    finds(checkFolderCycles, texts, where, /lease \(by a\.ts\) -> .*auth \(by c\.ts\)/);
    const typed = 'import type { A } from "../auth/a.ts";';
    clean(checkFolderCycles, { ...texts, "packages/store/src/lease/c.ts": typed });
  });
  test("a folder that needs the one around it, which needs it", () => {
    const texts = {
      "packages/store/src/store.ts": 'import { a } from "./auth/a.ts";',
      "packages/store/src/auth/a.ts": 'import { backend } from "../backend.ts";',
      "packages/store/src/backend.ts": "",
    };
    finds(checkFolderCycles, texts, "packages/store/src", /folder cycle/);
  });
  test("a file that nothing reaches", () => {
    const texts = {
      "packages/raft/index.ts": 'export * from "./src/a.ts";',
      "packages/raft/src/a.ts": 'new Worker(new URL("./worker.ts", import.meta.url));',
      "packages/raft/src/worker.ts": "",
      "scripts/tool.ts": "",
      "package.json": '{ "scripts": { "tool": "node scripts/tool.ts" } }',
    };
    clean(checkDeadFiles, texts);
    finds(
      checkDeadFiles,
      { ...texts, "packages/raft/src/old.ts": "" },
      "packages/raft/src/old.ts",
      /dead/,
    );
    finds(checkDeadFiles, { ...texts, "package.json": "{}" }, "scripts/tool.ts", /dead/);
  });
  test("an import of nothing", () => {
    finds(checkMissing, { "scripts/a.ts": 'import "./b.ts";' }, "scripts/a.ts:1", /not there/);
    clean(checkMissing, { "scripts/a.ts": 'import "./b.ts";', "scripts/b.ts": "" });
  });
});

describe("text", () => {
  test("a wide line", () => {
    finds(
      checkLineWidth,
      { "scripts/a.ts": `\n${"x".repeat(101)}` },
      "scripts/a.ts:2",
      /101 columns/,
    );
    finds(checkLineWidth, { "a.ts": `// "${"x".repeat(97)}"` }, "a.ts:1", /more than 100/);
    finds(checkLineWidth, { "a.ts": `f("${"x".repeat(137)}")` }, "a.ts:1", /more than 140/);
    finds(checkLineWidth, { "a.sh": `# ${"x".repeat(99)}` }, "a.sh:1", /101 columns/);
    clean(checkLineWidth, { "scripts/a.ts": "é".repeat(100), "docs/a.md": "x".repeat(200) });
    clean(checkLineWidth, { "a.ts": `f("${"x".repeat(130)}")`, "a.sh": "x".repeat(140) });
  });
  for (const line of [
    "// TODO: later",
    "it.only(f);",
    "test({ only: true }, f);",
    "test.skip(f);",
    "t.skip();",
    "test({ skip: true }, f);",
  ]) {
    test(line, () =>
      finds(
        checkLeftovers,
        { "scripts/a.ts": `\n${line}` },
        "scripts/a.ts:2",
        /leftover|alone|reason/,
      ),
    );
  }
  test("a skip with a reason", () => {
    clean(checkLeftovers, {
      "scripts/a.ts":
        't.skip("no etcd here");\ntest("a", { skip: missing }, f);\nconst todos = "test.only(";',
    });
  });
});

describe("dependencies", () => {
  const good = {
    "package.json": '{ "dependencies": { "undici": "7.30.2" } }',
    "package-lock.json":
      '{ "packages": { "": { "dependencies": { "undici": "7.30.2" } }, "packages/raft": {} } }',
    "packages/raft/package.json": '{ "name": "@quorate/raft" }',
    "docs/internals/dependencies.md":
      "| `undici` | scripts, test | HTTP calls with certificates |\n",
    "scripts/a.ts": 'import { fetch } from "undici/index.js";',
  };
  test("good", () => clean(checkDependencies, good));
  test("a version range", () => {
    const range = (text: string): string => text.replace("7.30.2", "^7.30.2");
    const texts = {
      ...good,
      "package.json": range(good["package.json"]),
      "package-lock.json": range(good["package-lock.json"]),
    };
    finds(checkDependencies, texts, "package.json", /not pinned/);
  });
  test("a lock file that lacks a package of ours or a version", () => {
    finds(
      checkDependencies,
      { ...good, "packages/sim/package.json": "{}" },
      "package-lock.json",
      /older than packages\/sim/,
    );
    finds(
      checkDependencies,
      { ...good, "package.json": good["package.json"].replace("7.30.2", "7.30.3") },
      "package-lock.json",
      /older than pack/,
    );
  });
  test("no row", () =>
    finds(
      checkDependencies,
      { ...good, "docs/internals/dependencies.md": "" },
      "docs/internals/dependencies.md",
      /no row says why undici/,
    ));
  test("a stale row", () => {
    const text = `${good["docs/internals/dependencies.md"]}| \`left-pad\` | tool | pads on the left |\n`;
    finds(
      checkDependencies,
      { ...good, "docs/internals/dependencies.md": text },
      "docs/internals/dependencies.md",
      /left-pad has a row/,
    );
  });
  test("an undeclared import", () => {
    finds(
      checkDependencies,
      { ...good, "scripts/b.ts": '\nimport x from "@a/b/c";' },
      "scripts/b.ts:2",
      /imports @a\/b, which no package\.json/,
    );
  });
  test("an import from a place that the row does not name", () => {
    finds(
      checkDependencies,
      { ...good, "packages/raft/src/a.ts": 'import "undici";' },
      "packages/raft/src/a.ts:1",
      /let raft import undici/,
    );
  });
  test("never imported", () => {
    finds(
      checkDependencies,
      { ...good, "scripts/a.ts": "" },
      "docs/internals/dependencies.md",
      /nothing imports it/,
    );
  });
});

describe("stale names", () => {
  const at = "packages/wal/src/a.ts";
  const there = { "packages/wal/src/segments.ts": "export class SegmentFile {}\n" };
  const says = (comment: string) => ({ ...there, [at]: `let a;\n/** ${comment} */\nlet b;\n` });
  test("a path in a comment, and one in a page", () => {
    finds(checkStaleNames, says("See wal/gone-file.ts."), `${at}:2`, /no file wal\/gone-file\.ts/);
    finds(checkStaleNames, says("See docs/gone.md."), `${at}:2`, /no file docs\/gone\.md/);
    const page = { ...there, "docs/page.md": "# A\n\nSee `src/gone-file.ts`.\n" };
    finds(checkStaleNames, page, "docs/page.md:3", /no file src\/gone-file\.ts/);
  });
  test("a class, and a function in backquotes", () => {
    finds(checkStaleNames, says("A RequestGate stands here."), `${at}:2`, /called RequestGate/);
    finds(checkStaleNames, says("Runs `openGate()`."), `${at}:2`, /called openGate/);
    const lines = { ...there, [at]: "// The next lines\n// wait for a RequestGate.\nlet b;\n" };
    finds(checkStaleNames, lines, `${at}:2`, /called RequestGate/);
  });
  test("what there is, what stands for any, and names of another project with their source", () => {
    clean(checkStaleNames, says("Each SegmentFile of src/segments.ts; several SegmentFiles."));
    clean(checkStaleNames, says("Written to NAME.ts, as https://host/x/gone-file.ts has it."));
    clean(checkStaleNames, says("As NewSegmentFile (etcd: server/wal/file_pipeline.go)."));
    const fence = { ...there, "docs/page.md": "```text\nsrc/gone-file.ts\n```\n" };
    clean(checkStaleNames, fence);
  });
});
