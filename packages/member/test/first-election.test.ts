import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import {
  FIRST_ELECTION_LOOK_MS,
  FIRST_ELECTION_LOOKS,
  FirstElection,
} from "../src/loop/first-election.ts";

function setUp() {
  const clock = new ManualClock();
  const state = { peers: 0, looks: 0, advanced: [] as number[] };
  const election = new FirstElection(10, {
    clock,
    logger: silentLogger,
    transport: {
      peers: () => {
        state.looks++;
        const status = { urls: [], roundTripMs: undefined };
        return Array.from({ length: 3 }, (_, i) => ({
          ...status,
          id: BigInt(i),
          activeSinceMs: i < state.peers ? 0 : undefined,
        }));
      },
    },
    raft: { advanceElection: (ticks) => void state.advanced.push(ticks) },
    turns: { wake: () => {} },
  });
  election.start();
  return { clock, state, election };
}

test("two connected peers shorten the first election once, to two ticks", () => {
  const { clock, state } = setUp();
  state.peers = 1;
  clock.advance(1000);
  assert.deepEqual(state.advanced, []);
  state.peers = 2;
  clock.advance(FIRST_ELECTION_LOOK_MS);
  assert.deepEqual(state.advanced, [8]);
  clock.advance(60_000);
  assert.deepEqual(state.advanced, [8]);
});

test("connections are counted for five seconds at the most, and not after a stop", () => {
  const late = setUp();
  late.clock.advance(60_000);
  assert.equal(late.state.looks, FIRST_ELECTION_LOOKS);
  late.state.peers = 4;
  late.clock.advance(60_000);
  assert.deepEqual(late.state.advanced, []);

  const stopped = setUp();
  stopped.election.stop();
  stopped.state.peers = 2;
  stopped.clock.advance(60_000);
  assert.deepEqual(stopped.state.advanced, []);
});
