/** A crowd of handshakes: how many read in a turn, before others have theirs. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { HandshakeLine, MAX_HANDSHAKES_A_TURN } from "../node/engine/handshake-line.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The kernel's side of a connection. */
class Client extends EventEmitter {
  readonly number: number;
  destroyed = false;
  bytesRead = 0;
  isReading = false;
  readonly _handle = {
    readStart: () => void (this.isReading = true),
    readStop: () => void (this.isReading = false),
  };

  constructor(number: number) {
    super();
    this.number = number;
  }
}

/** A line of clients, and the numbers of those whose handshakes have begun. */
function lineOf(count: number) {
  const line = new HandshakeLine();
  const begun: number[] = [];
  const add = (client: Client): void => {
    line.add(client as unknown as Socket, () => {
      begun.push(client.number);
      client.isReading = true;
    });
  };
  const clients = Array.from({ length: count }, (_, number) => new Client(number));
  for (const client of clients) add(client);
  const ended = (client: Client): void => line.ended(client as unknown as Socket);
  return { add, begun, clients, ended, reading: () => clients.filter((one) => one.isReading) };
}

const numbers = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);

test("a few handshakes begin in a turn, in the order in which they came", async () => {
  const count = 3 * MAX_HANDSHAKES_A_TURN + 1;
  const { add, begun, clients, ended } = lineOf(count);
  assert.equal(begun.length, MAX_HANDSHAKES_A_TURN, "the first ones wait for nothing");
  for (let turns = 1; begun.length <= count; turns++) {
    assert.equal(begun.length, Math.min(count + 1, turns * MAX_HANDSHAKES_A_TURN));
    for (const number of begun) ended(clients[number]);
    await turn();
    // One that comes meanwhile is the last.
    if (turns === 1) add(clients[clients.push(new Client(count)) - 1]);
  }
  assert.deepEqual(begun, numbers(0, count + 1));
  for (const client of clients) ended(client);
  await turn();
  add(new Client(count + 1));
  assert.equal(begun.length, count + 2, "and at rest one waits for nothing");
});

test("of those that have begun no more than a few read at a time, each in its turn", async () => {
  const count = 5 * MAX_HANDSHAKES_A_TURN;
  const { begun, clients, reading } = lineOf(count);
  const seen = new Set<Client>();
  for (let i = 0; i < 1000 && seen.size < count; i++) {
    await turn();
    const now = reading();
    assert.ok(now.length <= MAX_HANDSHAKES_A_TURN, `${now.length} read in one turn`);
    // Those that have begun read a second time, now that all have had their first.
    if (begun.length === count) for (const one of now) seen.add(one);
    else for (const one of now) one.bytesRead += 100;
  }
  assert.equal(seen.size, count);
  assert.equal(begun.length, count);
  for (const client of clients) {
    client.destroyed = true;
    client.emit("close");
  }
});

test("those that are left when the crowd has gone all read", async () => {
  const { clients, ended, reading } = lineOf(3 * MAX_HANDSHAKES_A_TURN);
  for (let i = 0; i < 10; i++) await turn();
  const left = clients.slice(0, MAX_HANDSHAKES_A_TURN);
  for (const client of clients) if (!left.includes(client)) ended(client);
  for (let i = 0; i < 1000 && !left.every((one) => one.isReading); i++) await turn();
  assert.ok(left.every((one) => one.isReading));
  assert.ok(reading().length >= left.length);
});

test("a connection that has closed before its turn does not begin", async () => {
  const { begun, clients } = lineOf(MAX_HANDSHAKES_A_TURN + 1);
  const last = clients[MAX_HANDSHAKES_A_TURN];
  last.destroyed = true;
  last.emit("close");
  await turn();
  await turn();
  assert.deepEqual(begun, numbers(0, MAX_HANDSHAKES_A_TURN));
});
