import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { raftpb } from "@quorate/proto";
import { Departure, MAX_LAST_VOTER_WAIT_MS } from "../src/membership/departure.ts";

const ELECTION_MS = 1000;
const { MsgApp, MsgHeartbeat, MsgVote } = raftpb.MessageType;

function begin() {
  const clock = new ManualClock();
  const seen = {
    endedWith: undefined as { error: Error | undefined } | undefined,
    isServing: true,
  };
  const departure = new Departure({
    memberId: 1n,
    dataDir: "/data",
    electionTimeoutMs: ELECTION_MS,
    clock,
    logger: silentLogger,
    lifetime: {
      stopServing: () => {
        seen.isServing = false;
      },
      end: (error) => {
        seen.endedWith ??= { error };
      },
    },
  });
  return { clock, seen, departure };
}

const message = (type: number, commit: number) =>
  raftpb.Message.create({ type, from: 2n, to: 1n, term: 5, commit });

test("where two or more voters are left, a removed member stays for three election timeouts", () => {
  const { clock, seen, departure } = begin();
  departure.applied({ index: 9, voters: 2 });
  clock.advance(3 * ELECTION_MS - 1);
  assert.deepEqual([seen.isServing, seen.endedWith], [false, undefined]);
  clock.advance(1);
  assert.deepEqual(seen.endedWith, { error: undefined });
});

test("one voter is left: a removed member stays until a leader has committed the removal, at least a second", () => {
  const { clock, seen, departure } = begin();
  departure.applied({ index: 9, voters: 1 });
  clock.advance(30 * ELECTION_MS);
  departure.heard([message(MsgApp, 8), message(MsgHeartbeat, 8), message(MsgVote, 9)]);
  clock.advance(30 * ELECTION_MS);
  assert.equal(seen.endedWith, undefined);
  departure.heard([message(MsgHeartbeat, 9)]);
  clock.advance(0);
  assert.deepEqual(seen.endedWith, { error: undefined });

  const other = begin();
  other.departure.applied({ index: 9, voters: 1 });
  other.departure.heard([message(MsgApp, 9)]);
  other.clock.advance(999);
  assert.equal(other.seen.endedWith, undefined);
  other.clock.advance(1);
  assert.deepEqual(other.seen.endedWith, { error: undefined });
});

test("a removed member that hears from no peer waits for the last voter for ten minutes and no longer, and says then why it ends", () => {
  const { clock, seen, departure } = begin();
  const error = new Error("removed");
  departure.applied({ index: 9, voters: 1, error });
  clock.advance(MAX_LAST_VOTER_WAIT_MS - 1);
  assert.equal(seen.endedWith, undefined);
  clock.advance(1);
  assert.deepEqual(seen.endedWith, { error });
});

test("a peer that says so ends the wait for the last voter; however often it says so, one timer runs", () => {
  const { clock, seen, departure } = begin();
  departure.applied({ index: 9, voters: 1 });
  for (let i = 0; i < 1000; i++) departure.known();
  clock.advance(1000);
  assert.deepEqual(seen.endedWith, { error: undefined });
});

test("a member that learns of its removal from a peer before it has applied it ends at once", () => {
  const { clock, seen, departure } = begin();
  departure.known();
  clock.advance(0);
  assert.deepEqual([seen.isServing, seen.endedWith], [false, { error: undefined }]);
});

test("a member that has ended waits no longer", () => {
  const { clock, seen, departure } = begin();
  departure.applied({ index: 9, voters: 1 });
  departure.known();
  departure.stop();
  clock.advance(MAX_LAST_VOTER_WAIT_MS);
  assert.equal(seen.endedWith, undefined);
});
