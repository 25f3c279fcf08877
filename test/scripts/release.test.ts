/**
 * The release: what its files are made of, and that the archive for this platform starts a cluster
 * on a root that has nothing but a C library, a shell and small tools.
 * @slow
 */

import assert from "node:assert/strict";
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { gzipSync as gzip } from "node:zlib";
import { type Bundle, bundlePrograms, startFiles } from "../../scripts/release/bundle.ts";
import { archiveContents, debianContents, type Parts } from "../../scripts/release/contents.ts";
import { debianPackage } from "../../scripts/release/debian.ts";
import { linksOf } from "../../scripts/release/documents.ts";
import { envtestArchive, envtestIndex, envtestName } from "../../scripts/release/envtest.ts";
import { launcherText } from "../../scripts/release/launcher.ts";
import { ownPlatform, platforms } from "../../scripts/release/platform.ts";
import { releasePrograms } from "../../scripts/release/programs.ts";
import { ar, type Entry, tar, withDirectories } from "../../scripts/release/tar.ts";
import { findProgram, skipWithout } from "../support/executables.ts";
import { scratchDirectory } from "../support/scratch.ts";

const root = join(import.meta.dirname, "../..");
const dir = scratchDirectory("quorate-release-test-");

const bytes = (text: string): Uint8Array => Buffer.from(text);

/** The sources that are read where a file of the bundle, without its ending, is imported. */
const sourcesAt = (bundle: Bundle, name: string) =>
  startFiles(bundle, name).flatMap((file) => bundle.sources.get(file) ?? []);
/** Those of quoratectl's commands. */
const commandsOf = (sources: readonly string[]) =>
  sources.flatMap((path) => /packages\/ctl\/src\/commands\/(.*)\.ts$/.exec(path)?.[1] ?? []).sort();

test("quoratectl starts with little: no LevelDB, no client, no command before it is asked for", async () => {
  const bundle = await bundlePrograms(releasePrograms());
  const sources = sourcesAt(bundle, "quoratectl");
  const heavy = sources.filter((path) =>
    /node_modules|packages\/(?:bolt|client|host\/node|proto\/src\/(?:gen|json)|raft|rpc|store|wal)\//.test(
      path,
    ),
  );
  assert.deepEqual(
    heavy,
    [],
    "these are loaded before the command is known: import them where they are needed",
  );
  assert.deepEqual(commandsOf(sources), ["completion", "help"]);
  const get = [...bundle.files.keys()].find((name) => name.startsWith("get-"))!;
  const ofGet = sourcesAt(bundle, get.replace(/\.mjs$/, ""));
  assert.deepEqual(commandsOf(ofGet), ["consistency", "get"]);
  assert.deepEqual(
    ofGet.filter((path) => /node_modules|packages\/(?:rpc|proto\/src\/gen\/json)/.test(path)),
    [],
  );
  assert.ok(!bundle.packages.includes("@grpc/grpc-js"));
});

test("the same files give the same bundle, and nothing in it depends on where it was made", async () => {
  const [one, two] = await Promise.all([
    bundlePrograms(releasePrograms()),
    bundlePrograms(releasePrograms()),
  ]);
  assert.deepEqual([...one.files.keys()], [...two.files.keys()]);
  for (const [name, content] of one.files) {
    assert.ok(Buffer.compare(content, two.files.get(name)!) === 0, name);
    assert.ok(!Buffer.from(content).includes(root), `${name} names ${root}`);
  }
});

test("a package that is imported when it is needed keeps its names", async () => {
  const { files } = await bundlePrograms(releasePrograms());
  const texts = new Map(
    [...files].map(([name, content]) => [name, Buffer.from(content).toString()]),
  );
  const imported = new Set(
    [...texts.values()].flatMap((text) =>
      [...text.matchAll(/\bimport\("\.\/([^"]+)"\)/g)].map(([, name]) => name),
    ),
  );
  const nameless = [...imported].filter((name) => {
    const text = texts.get(name)!;
    return /^export default require_/m.test(text) && !/^export \{/m.test(text);
  });
  assert.deepEqual(nameless, []);
  assert.ok([...imported].some((name) => name.startsWith("prom-client-")));
});

test("setup-envtest's archive starts the release that is in it, by whichever of many starts comes first", async () => {
  const started = '#!/bin/sh\necho "$QUORATE_PARENT_PID $*"\n';
  const program = { path: "quorate-1.2.3/bin/quorate", mode: 0o755, content: bytes(started) };
  const release = gzip(tar(withDirectories([program]), 0));
  const home = join(dir, "envtest");
  const assets = join(home, "assets");
  mkdirSync(assets, { recursive: true });
  const archive = envtestArchive(release, 0);
  // As setup-envtest does: files alone, side by side.
  execFileSync("tar", ["-xf", "-", "-C", assets, "--strip-components=2"], { input: archive });
  const run = promisify(execFile);
  const env: NodeJS.ProcessEnv = { ...process.env, XDG_CACHE_HOME: join(home, "cache") };
  const outputs = await Promise.all(
    ["etcd", "kube-apiserver", "etcd", "kube-apiserver"].map(async (name) => {
      const { stdout } = await run(join(assets, name), ["--x=a b"], { env });
      return stdout;
    }),
  );
  const etcd = `${process.pid} --x=a b\n`;
  const server = `${process.pid} apiserver --controllers= --x=a b\n`;
  assert.deepEqual(outputs, [etcd, server, etcd, server]);
  const [unpacked, ...others] = readdirSync(join(home, "cache/quorate"));
  assert.match(unpacked!, /^release-[0-9a-f]{12}$/);
  assert.deepEqual(others, []);
  const { XDG_CACHE_HOME: _, HOME: __, ...bare } = env;
  const homeless = spawnSync(join(assets, "etcd"), [], { env: bare, encoding: "utf8" });
  assert.notEqual(homeless.status, 0);
  assert.match(homeless.stderr, /HOME: has to name a directory, or XDG_CACHE_HOME one for a cache/);
  assert.deepEqual(
    platforms.map((platform) => envtestName(platform, "1.36.3")),
    [
      "envtest-v1.36.3-linux-amd64.tar.gz",
      "envtest-v1.36.3-linux-arm64.tar.gz",
      "envtest-v1.36.3-darwin-arm64.tar.gz",
    ],
  );
  assert.equal(
    envtestIndex("1.36.3", new Map([["a.tar.gz", bytes("a")]]), "https://files.example/e"),
    "releases:\n  v1.36.3:\n    a.tar.gz:\n      hash: " +
      "1f40fc92da241694750979ee6cf582f2d5d7d28e18335de05abc54d0560e0f5302860c652bf08d560252aa5e74210546f369fbbbce8c12cfc7957b2652fe9a75" +
      "\n      selfLink: https://files.example/e/a.tar.gz\n",
  );
});

/** Parts of a release of which only the texts are real. */
function partsOf(platform: (typeof platforms)[number]): Parts {
  const none = new Map();
  const bundle = { files: none, sources: none, imports: none, laterImports: none, packages: [] };
  const [node, native] = [bytes("node"), bytes("native")];
  const empty = { licences: [], manPages: new Map(), completions: new Map(), libatomic: undefined };
  return {
    version: "1.2.3",
    time: new Date(0),
    platform,
    programs: releasePrograms(),
    bundle,
    node,
    native,
    ...empty,
  };
}

test("every link of every page in a package leads to something in the package", () => {
  for (const platform of platforms) {
    const packages = [
      archiveContents(partsOf(platform)),
      ...(platform.debian === undefined ? [] : [debianContents(partsOf(platform), gzip)]),
    ];
    for (const entries of packages) {
      const there = new Set(withDirectories(entries).map(({ path }) => path.replace(/\/$/, "")));
      const pages = entries.filter(
        ({ path, content }) => path.endsWith(".md") && content !== undefined,
      );
      assert.ok(pages.length > 10, `${pages.length} pages`);
      const links = pages.flatMap(({ path, content }) =>
        linksOf(path, Buffer.from(content!).toString("utf8")).map((to) => [path, to] as const),
      );
      assert.ok(links.length > 40, `${links.length} links`);
      const dead = links.filter(([, to]) => !there.has(to)).map(([path, to]) => `${path} -> ${to}`);
      assert.deepEqual(dead, []);
      // What the alerts call their runbook is there as well.
      const home = pages
        .find(({ path }) => path.endsWith("README.md"))!
        .path.replace(/README\.md$/, "");
      for (const path of [
        "docs/operate/runbook.md",
        "deploy/prometheus/alerts.yml",
        "deploy/grafana/quorate.json",
      ])
        assert.ok(there.has(home + path), path);
    }
  }
});

test("tar reads what we write: files, modes, links, directories and long names", () => {
  const long = `${"directory/".repeat(20)}file`;
  const entries: Entry[] = [
    { path: "a/program", mode: 0o755, content: bytes("#!/bin/sh\n") },
    { path: "a/b/text", mode: 0o644, content: bytes("x".repeat(1000)) },
    { path: "a/link", mode: 0o777, link: "b/text" },
    { path: long, mode: 0o644, content: bytes("deep") },
  ];
  const file = join(dir, "a.tar");
  writeFileSync(file, tar(withDirectories(entries), 1_700_000_000));
  const listing = execFileSync("tar", ["-tvf", file, "--utc", "--full-time"], { encoding: "utf8" });
  assert.match(listing, /^drwxr-xr-x root\/root +0 2023-11-14 22:13:20 a\/$/m);
  assert.match(listing, /^-rwxr-xr-x root\/root +10 2023-11-14 22:13:20 a\/program$/m);
  assert.match(listing, /^lrwxrwxrwx root\/root +0 2023-11-14 22:13:20 a\/link -> b\/text$/m);
  execFileSync("tar", ["-xf", file, "-C", dir]);
  assert.equal(readFileSync(join(dir, "a/link"), "utf8"), "x".repeat(1000));
  assert.equal(readFileSync(join(dir, long), "utf8"), "deep");
  assert.throws(
    () => tar([{ path: "x".repeat(101), mode: 0o644, content: bytes("") }], 0),
    /too long for a tar header/,
  );
});

test("the Debian package is one", {
  skip: skipWithout("dpkg-deb"),
}, () => {
  const files: Entry[] = [
    { path: "usr/bin/quorate", mode: 0o777, link: "../lib/quorate/bin/quorate" },
    { path: "usr/lib/quorate/bin/quorate", mode: 0o755, content: bytes("#!/bin/sh\n") },
    { path: "etc/quorate/quorate.env", mode: 0o644, content: bytes("ETCD_NAME=a\n") },
  ];
  const file = join(dir, "quorate.deb");
  writeFileSync(
    file,
    debianPackage(files, {
      version: "1.2.3",
      architecture: "amd64",
      mtimeSeconds: 1_700_000_000,
      compress: gzip,
    }),
  );
  const said = (...args: string[]): string =>
    execFileSync("dpkg-deb", [...args, file], { encoding: "utf8" });
  assert.match(said("--info"), /Package: quorate\n Version: 1\.2\.3\n Architecture: amd64/);
  assert.match(said("--contents"), /\.\/usr\/bin\/quorate -> \.\.\/lib\/quorate\/bin\/quorate/);
  assert.equal(execFileSync("dpkg-deb", ["--ctrl-tarfile", file]).includes("./conffiles"), true);
  assert.equal(
    execFileSync("dpkg-deb", ["-I", file, "conffiles"], { encoding: "utf8" }),
    "/etc/quorate/quorate.env\n",
  );
  assert.match(
    execFileSync("dpkg-deb", ["-I", file, "md5sums"], { encoding: "utf8" }),
    /^[0-9a-f]{32} {2}etc\/quorate\/quorate\.env\n/,
  );
});

test("an ar archive has even offsets", () => {
  const archive = ar(
    [
      { name: "odd", content: bytes("abc") },
      { name: "b", content: bytes("d") },
    ],
    7,
  ).toString("latin1");
  assert.equal(archive.indexOf("b  "), 8 + 60 + 4);
  assert.equal(archive.length, 8 + 60 + 4 + 60 + 2);
});

test("each program's launcher is a shell script that is well formed, with the flags of bin/", () => {
  for (const platform of platforms) {
    for (const program of releasePrograms()) {
      const text = launcherText(
        program,
        platform,
        platform.libatomic === undefined ? undefined : "lib/shared",
      );
      const { status, stderr } = spawnSync("sh", ["-n"], { input: text, encoding: "utf8" });
      assert.equal(status, 0, stderr);
      assert.ok(text.includes(`"$d/lib/${program.name}.mjs" "$@"\n`), text);
    }
  }
  const [quorate] = releasePrograms();
  const limit = quorate.flags.find((flag) => flag.startsWith("--max-old-space-size"));
  assert.ok(limit !== undefined);
  const args = (options: string): string => {
    const text = launcherText(quorate, platforms[0], undefined).replace("exec ", "echo ");
    return spawnSync("sh", [], { input: text, encoding: "utf8", env: { NODE_OPTIONS: options } })
      .stdout;
  };
  assert.ok(args("").includes(limit), args(""));
  for (const own of ["--max-old-space-size=900", "--trace-gc --max_old_space_size=900"])
    assert.ok(!args(own).includes("--max-old"), args(own));
  assert.ok(
    quorate.flags.length > 0 && Object.keys(quorate.variables).length > 0 && quorate.hasMain,
    JSON.stringify(quorate),
  );
});

test("mistakes on the command line are reported, with a correction", () => {
  const call = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, "scripts/release.ts"), ...args], { encoding: "utf8" });
  const wrong = call("--platform", "amiga");
  assert.equal(wrong.status, 2);
  assert.match(
    wrong.stderr,
    /^there is no platform amiga; there are linux-x64, linux-arm64, darwin-arm64\n/,
  );
  assert.match(call("--compression", "10").stderr, /--compression is 10; it goes from 1 to 9/);
  assert.match(call("--help").stdout, /--platform +comma-separated: linux-x64/);
});

const whyNot = cannotChroot();

test("the archive, on a root without Node: installs, starts three members, loses one, goes on, uninstalls", {
  skip: whyNot ?? false,
}, () => {
  const out = join(dir, "dist");
  const made = spawnSync(
    process.execPath,
    [
      join(root, "scripts/release.ts"),
      "--platform",
      ownPlatform!.name,
      "--out",
      out,
      "--no-deb",
      "--no-library",
      "--compression",
      "1",
    ],
    { encoding: "utf8", env: { ...process.env, SOURCE_DATE_EPOCH: "1700000000" } },
  );
  assert.equal(made.status, 0, made.stderr);
  const [sum, name] = readFileSync(join(out, "SHA256SUMS"), "utf8").trim().split(/ +/) as [
    string,
    string,
  ];
  assert.match(
    execFileSync("sha256sum", [join(out, name)], { encoding: "utf8" }),
    new RegExp(`^${sum} `),
  );
  const { status, stdout, stderr } = spawnSync(
    join(root, "scripts/test-release.sh"),
    ["--bare", "--archive", join(out, name)],
    {
      encoding: "utf8",
      timeout: 300_000,
    },
  );
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  assert.match(stdout, /three members are healthy after \d+ ms/);
  assert.match(stdout, /one of three was killed \(pid \d+\): reads and writes go on/);
  assert.match(stdout, /removed Quorate [\d.]+ linux-\w+ from \/opt\/quorate/);
  assert.match(stdout, /the archive works\n$/);
});

/** Why the last test cannot run here, or undefined. */
function cannotChroot(): string | undefined {
  if (process.platform !== "linux" || ownPlatform === undefined)
    return "releases are tried out on Linux only";
  if (process.getuid?.() !== 0) return "only root can chroot";
  for (const program of ["unshare", "ip", "chroot", "ldd", "sha256sum"]) {
    if (findProgram(program) === undefined) return `${program} is not installed`;
  }
  const { status } = spawnSync("unshare", ["--mount", "--pid", "--net", "--fork", "true"]);
  return status === 0 ? undefined : "unshare is not allowed here";
}
