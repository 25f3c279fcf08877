/**
 * The wrappers of examples/ for other languages, and the pages for tests in Go and other languages.
 * @slow
 */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { runGuide, skipGuides } from "../../../test/docs/guide.ts";
import { findProgram, skipWithout } from "../../../test/support/executables.ts";

const root = join(import.meta.dirname, "../../..");
const run = promisify(execFile);
const env = { ...process.env, QUORATE: join(root, "bin/quorate.js") };

test("Go: quorateenv.Start gives a server that is ready", { skip: skipWithout("go") }, async () => {
  const cwd = join(root, "examples/quorateenv");
  const { stdout } = await run("go", ["test", "-count=1", "-v", "."], { cwd, env });
  assert.match(stdout, /^--- PASS: TestStart/m);
});

function skipWithoutPytest(): string | false {
  try {
    execFileSync("python3", ["-c", "import pytest"], { stdio: "ignore" });
    return false;
  } catch {
    return "python3 has no pytest";
  }
}

test("Python: the fixture kube gives a server that is ready", {
  skip: skipWithoutPytest(),
}, async () => {
  const cwd = join(root, "examples/pytest-quorate");
  const args = ["-m", "pytest", "-q", "-p", "no:cacheprovider"];
  const options = { cwd, env: { ...env, PYTHONDONTWRITEBYTECODE: "1" } };
  assert.match((await run("python3", args, options)).stdout, /^1 passed/m);
});

/** Jars of JUnit that Maven has fetched for another project. */
function junitJars(): string[] {
  const repository = join(homedir(), ".m2/repository/org");
  if (!existsSync(repository)) return [];
  const names = readdirSync(repository, { recursive: true, encoding: "utf8" });
  return names
    .filter((name) =>
      /\/(?:junit-jupiter-api|opentest4j|apiguardian-api|junit-platform-commons)-[\d.]+\.jar$/.test(
        name,
      ),
    )
    .map((name) => join(repository, name));
}

test("Java: the extension compiles against JUnit 5", {
  skip:
    skipWithout("javac") || (junitJars().length < 3 ? "Maven's repository has no JUnit 5" : false),
}, async () => {
  const out = mkdtempSync(join(tmpdir(), "quorate-junit-"));
  try {
    const source = join(root, "examples/junit-quorate/QuorateKube.java");
    await run("javac", ["-cp", junitJars().join(":"), "-d", out, source]);
    assert.ok(existsSync(join(out, "QuorateKube.class")));
  } finally {
    rmSync(out, { recursive: true });
  }
});

for (const page of ["guide/kubernetes-go.md", "guide/kubernetes-others.md"])
  test(`${page} does what it says`, { skip: skipGuides }, async () => {
    const { printed } = await runGuide(page);
    if (page.includes("go"))
      assert.match(printed("envtest --path"), /^etcd\nkube-apiserver\netcd Version: /m);
    else assert.match(printed("grep -q KUBECONFIG"), /^ready$/m);
  });

test("a wrapper without its program says what to do", {
  skip: findProgram("go") === undefined ? "go is not on PATH" : false,
}, async () => {
  const cwd = join(root, "examples/quorateenv");
  const missing = { ...env, QUORATE: join(root, "no-such-program") };
  const args = ["test", "-count=1", "-v", "."];
  const { stdout } = await run("go", args, { cwd, env: missing });
  assert.match(stdout, /no-such-program on the PATH: npm install quorate, or set QUORATE/);
});
