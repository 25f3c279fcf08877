/**
 * Tells a benchmark about the process that it is in: its heap, as V8 counts it, and what held its
 * event loop. The benchmark has Node load it before a member (agents.ts). It answers on an abstract
 * unix socket that has the process's id in its name: a line with the name of a command, a line of
 * JSON.
 *
 * It is plain JavaScript: what translates TypeScript takes 40 MiB and stays in the process.
 */
import { createHook } from "node:async_hooks";
import fs from "node:fs";
import { Session } from "node:inspector/promises";
import { syncBuiltinESMExports } from "node:module";
import { createServer } from "node:net";
import { constants, PerformanceObserver } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { GCProfiler, getHeapStatistics } from "node:v8";
import { isMainThread } from "node:worker_threads";

/** Bytes between two samples of an allocation. */
const SAMPLING_BYTES = 8192;
const YOUNG_SPACES = ["new_space", "new_large_object_space"];

let collections = new GCProfiler();
let allocatedBefore = 0;
const session = new Session();

/** Bytes that young objects took that a collection has left alive, over all of them. */
function survivedBytes({ statistics }) {
  const used = ({ heapSpaceStatistics }, isCounted) => {
    let bytes = 0;
    for (const { spaceName, spaceUsedSize } of heapSpaceStatistics)
      if (isCounted(YOUNG_SPACES.includes(spaceName))) bytes += spaceUsedSize;
    return bytes;
  };
  const young = (isYoung) => isYoung;
  const old = (isYoung) => !isYoung;
  let bytes = 0;
  for (const { gcType, beforeGC, afterGC } of statistics) {
    if (gcType !== "Scavenge") continue;
    bytes += used(afterGC, young) + Math.max(0, used(afterGC, old) - used(beforeGC, old));
  }
  return bytes;
}

/** Shorter things are not noted, and no more than so many. */
const MIN_NOTED_MS = 0.5;
const MAX_NOTED = 200_000;
const COLLECTIONS = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: "collection of young objects",
  [constants.NODE_PERFORMANCE_GC_MAJOR]: "full collection",
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "step of a full collection",
};

/** The monotonic clock of the machine, in milliseconds, which all its processes share. */
const machineMs = () => Number(process.hrtime.bigint()) / 1e6;

let noted = [];

function note(what, fromMs, durationMs) {
  if (durationMs >= MIN_NOTED_MS && noted.length < MAX_NOTED)
    noted.push({ what, fromMs, durationMs });
}

/** Types of work that LevelDB does on other threads. */
const isOfLevelDb = (type) => type.startsWith("classic_leveldb");

/** Notes callbacks of the event loop, the waits for other threads, collections and fdatasync. */
function noteAll() {
  const offsetMs = machineMs() - performance.now();
  new PerformanceObserver((list) => {
    for (const { detail, startTime, duration } of list.getEntries())
      if (detail.kind in COLLECTIONS)
        note(COLLECTIONS[detail.kind], startTime + offsetMs, duration);
  }).observe({ entryTypes: ["gc"] });
  const begun = new Map();
  const types = new Map();
  let depth = 0;
  let outer = 0;
  let fromMs = 0;
  createHook({
    trackPromises: false,
    init(id, type) {
      types.set(id, type);
      if (isOfLevelDb(type)) begun.set(id, machineMs());
    },
    before(id) {
      if (begun.has(id)) {
        note("LevelDB, another thread", begun.get(id), machineMs() - begun.get(id));
        begun.delete(id);
      }
      if (depth++ > 0) return;
      outer = id;
      fromMs = machineMs();
    },
    after() {
      // The callback in which the notes begin had no beginning.
      if (depth === 0 || --depth > 0) return;
      note(`loop, ${types.get(outer) ?? "callback"}`, fromMs, machineMs() - fromMs);
    },
    destroy(id) {
      types.delete(id);
      begun.delete(id);
    },
  }).enable();
  const { fdatasync, fdatasyncSync } = fs;
  fs.fdatasync = (fd, done) => {
    const beginMs = machineMs();
    fdatasync(fd, (error) => {
      note("fdatasync, another thread", beginMs, machineMs() - beginMs);
      done(error);
    });
  };
  fs.fdatasyncSync = (fd) => {
    const beginMs = machineMs();
    fdatasyncSync(fd);
    note("fdatasync, on the loop", beginMs, machineMs() - beginMs);
  };
  syncBuiltinESMExports();
}

/**
 * Begins to sample what is allocated. @param isShort whether what a collection of young objects
 * takes counts, too
 */
async function sample(isShort) {
  session.connect();
  await session.post("HeapProfiler.startSampling", {
    samplingInterval: SAMPLING_BYTES,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: isShort,
  });
  return {};
}

const commands = {
  /** Begins to note what holds the loop, for as long as the process lives. */
  trace() {
    noteAll();
    return {};
  },
  /** What was noted since the last time. */
  traced() {
    const all = noted;
    noted = [];
    return all;
  },
  begin() {
    collections = new GCProfiler();
    collections.start();
    allocatedBefore = getHeapStatistics().total_allocated_bytes;
    return {};
  },
  end() {
    const allocatedBytes = getHeapStatistics().total_allocated_bytes - allocatedBefore;
    return { allocatedBytes, survivedBytes: survivedBytes(collections.stop()) };
  },
  sample: () => sample(true),
  sampleSurvivors: () => sample(false),
  async samples() {
    const { profile } = await session.post("HeapProfiler.stopSampling");
    session.disconnect();
    return profile;
  },
};

function serve(socket) {
  socket.unref();
  socket.on("error", () => {});
  createInterface(socket).on("line", async (command) => {
    const answer = await commands[command]();
    socket.write(`${JSON.stringify(answer)}\n`);
  });
}

if (isMainThread) createServer(serve).listen(`\0quorate-heap-${process.pid}`).unref();
