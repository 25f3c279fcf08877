/**
 * Many heavy reads of one connection over real sockets. A member in memory serves them, whose time
 * the test moves, so that no speed decides what is seen.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, credentials } from "@grpc/grpc-js";
import { silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import type { SliceCaller, SliceTask } from "@quorate/member";
import { SLICE_LIMITS, type Slices } from "@quorate/member/testing";
import { KVService, RangeRequest, RangeRequest_SortTarget, RangeResponse } from "@quorate/proto";
import { EngineServer } from "@quorate/rpc/node";
import { serviceTable } from "@quorate/services";
import type { Steps } from "@quorate/store";
import { put, World } from "./support/world.ts";

const KEYS = 20;
const BURST = 32;

/** The reads of each connection: that have come, that have begun and not ended, and ended. */
class Counted {
  arrived = 0;
  running = 0;
  mostRunning = 0;
  ended = 0;
}

/** Counts the reads of a member from now on. Those of the first connection last while `lasts`. */
function counting(slices: Slices, lasts: () => boolean): Map<string, Counted> {
  const counts = new Map<string, Counted>();
  const run = slices.run.bind(slices);
  function* steps<T>(inner: Steps<T>, counted: Counted): Steps<T> {
    const isOfFirst = counted === counts.values().next().value;
    counted.mostRunning = Math.max(counted.mostRunning, ++counted.running);
    try {
      while (isOfFirst && lasts()) yield;
      return yield* inner;
    } finally {
      counted.running--;
      counted.ended++;
    }
  }
  slices.run = <T>(caller: SliceCaller, make: (task: SliceTask) => Steps<T>) => {
    const counted = counts.get(caller.address) ?? new Counted();
    counts.set(caller.address, counted);
    counted.arrived++;
    return run<T>(caller, (task) => steps(make(task), counted));
  };
  return counts;
}

test("of a connection's heavy reads a few run at a time, and another's is served between", async (t) => {
  const world = new World(1);
  world.sliceLimits = { ...SLICE_LIMITS, turnSteps: 16, quantumSteps: 1 };
  world.turnMs = 1;
  await world.startAll();
  const member = world.leader()!.member!;
  for (let i = 0; i < KEYS; i++) await world.settled(put(member, `k${i}`, String(i * 7919)));
  let isLong = true;
  const counts = counting(member.slices, () => isLong);

  const server = new EngineServer(
    { listen: [{ host: "127.0.0.1", port: 0, secure: false }] },
    {
      services: serviceTable(member),
      http: () => ({}),
      clock: nodeClock,
      logger: silentLogger,
    },
  );
  const [{ port }] = await server.listen();
  t.after(() => server.close(0));
  const connect = () => {
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      "grpc.use_local_subchannel_pool": 1,
    });
    t.after(() => client.close());
    return client;
  };
  const all = { key: new Uint8Array(1), rangeEnd: new Uint8Array(1), serializable: true };
  const read = (client: Client, sortTarget: RangeRequest_SortTarget) =>
    new Promise<number>((resolve, reject) => {
      client.makeUnaryRequest(
        KVService.methods.Range.path,
        (request: Uint8Array) => Buffer.from(request),
        (bytes) => RangeResponse.decode(bytes),
        RangeRequest.encode({ ...all, sortTarget }),
        (error, response) => (error ? reject(error) : resolve(response!.kvs.length)),
      );
    });
  const arrived = async (connections: number, reads: number) => {
    const sum = () => [...counts.values()].reduce((total, one) => total + one.arrived, 0);
    while (counts.size < connections || sum() < reads)
      await new Promise((resolve) => setTimeout(resolve, 1));
  };

  const burster = connect();
  const burst = Array.from({ length: BURST }, () => read(burster, RangeRequest_SortTarget.VALUE));
  await arrived(1, BURST);
  const single = read(connect(), RangeRequest_SortTarget.KEY);
  await arrived(2, BURST + 1);
  const [ofBurst, ofSingle] = [...counts.values()];
  await world.until(() => ofSingle.ended === 1);
  assert.equal(await single, KEYS);
  assert.equal(ofBurst.ended, 0, "the burst goes on meanwhile");
  // Turns enough for each of its reads to begin.
  await world.run(50);
  assert.equal(ofBurst.running, 4);
  isLong = false;
  await world.until(() => ofBurst.ended === BURST);
  assert.deepEqual(
    await Promise.all(burst),
    Array.from(burst, () => KEYS),
  );
  assert.equal(ofBurst.mostRunning, 4);
  await world.stopAll();
});
