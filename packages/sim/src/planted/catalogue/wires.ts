/** Bugs in what goes between members, and between members and their clients. */
import type { CatalogueBug } from "../source-edit.ts";

export const WIRE_BUGS: Readonly<Record<string, CatalogueBug>> = {
  "split-frame-loses-its-head": {
    at: "proto/src/http2/http2.ts#FrameSplitter.#complete",
    find: "$larger.set($part);",
    put: "",
    sim: { clientWires: true, faultPhaseMs: 2000 },
    seed: 274,
  },
  "stream-window-ignored": {
    at: "rpc/src/http2/sender.ts#Sender.#pump",
    find: "Math.min($size, DEFAULT_MAX_FRAME_BYTES, $stream.sendWindowBytes, this.#windowBytes)",
    put: "Math.min($size, DEFAULT_MAX_FRAME_BYTES, this.#windowBytes)",
    sim: { clientWires: true, valueBytes: 3000, faultPhaseMs: 2000 },
    seed: 1,
  },
  "long-frame-taken": {
    at: "proto/src/http2/http2.ts#FrameSplitter.push",
    find: "$length > DEFAULT_MAX_FRAME_BYTES",
    put: "false",
    sim: { clientWires: true, corruption: 0.01, faultPhaseMs: 2000 },
    seed: 231,
  },
  "gather-buffer-reused": {
    at: "transport/src/frames.ts#FrameReader.push",
    find: "this.#chunks.push($chunk);",
    put: `
      this.small ??= new Uint8Array(512);
      if ($chunk.length > this.small.length) this.#chunks.push($chunk);
      else {
        this.small.set($chunk);
        this.#chunks.push(this.small.subarray(0, $chunk.length));
      }`,
    tests: ["packages/transport/test/frames.test.ts"],
    seed: 1,
  },
  "sleeping-front-end-not-woken": {
    at: "front/src/ring.ts#RingWriter.publish",
    find: "Atomics.exchange($words, ASLEEP, 0) === 1",
    put: "false",
    sim: { frontMs: 10, faultPhaseMs: 2000 },
    seed: 1,
  },
  "full-ring-wakes-nobody": {
    at: "front/src/link.ts#Link.woken",
    find: "if ($reader.takesFromFull()) this.#deps.wake();",
    put: "",
    tests: ["packages/front/test/served.test.ts"],
    sim: "no",
  },
  "link-stops-after-a-turn": {
    at: "front/src/link.ts#Link.woken",
    find: "this.#deps.nextTurn(() => this.woken());",
    put: "",
    tests: ["packages/front/test/link.test.ts"],
    sim: "no",
  },
  "front-end-keeps-an-identity": {
    at: "front/src/caller-slots.ts#CallerSlots.#isOf",
    find: "$texts[at++] !== $context.metadata($field)",
    put: "false",
    sim: { frontMs: 10, users: true, faultPhaseMs: 2000 },
    seed: 1,
  },
  "damage-passed-over": {
    at: "transport/src/tunnel.ts#Tunnel.#begin",
    find: "if (this.#stream !== STREAM) throw $error;",
    put: "",
    sim: { corruption: 0.01, faultPhaseMs: 3000 },
    seed: 3,
  },
};
