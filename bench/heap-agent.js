/**
 * Tells a benchmark about the heap of the process that it is in, as V8 counts it. The benchmark
 * has Node load it before a member (heap.ts). It answers on an abstract unix socket that has the
 * process's id in its name: a line with the name of a command, a line of JSON.
 *
 * It is plain JavaScript: what translates TypeScript takes 40 MiB and stays in the process.
 */
import { Session } from "node:inspector/promises";
import { createServer } from "node:net";
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

const commands = {
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
  async sample() {
    session.connect();
    await session.post("HeapProfiler.startSampling", {
      samplingInterval: SAMPLING_BYTES,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    });
    return {};
  },
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
