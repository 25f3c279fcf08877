/**
 * Clients of the cluster: each does one random thing after the other on a connection to one member,
 * and all of it is written down.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "@quorate/host";
import { errorNameOf, KVService, type MethodDescriptor } from "@quorate/proto";
import {
  decodeAnswer,
  encodeRequest,
  type ModelOp,
  type ModelRequest,
  type Outcome,
  REFUSALS,
} from "@quorate/sim";
import type { ClientIdentity } from "../../scripts/cluster/health.ts";
import { CallError, TestClient } from "../support/client.ts";
import { SHARED, SHARED_KEYS } from "./keys.ts";
import type { Recorder } from "./recorder.ts";

/** A client whose call failed turns to another member after so long. */
const BACK_OFF_MS = 150;

/** What grpc-js says of a call that found no connection to leave by. */
const NOT_SENT = /^No connection established/;

/** A method that takes and returns bytes as they are. */
function raw(
  method: MethodDescriptor,
): MethodDescriptor & { responseType: { decode(bytes: Uint8Array): Uint8Array } } {
  const same = { encode: (bytes: Uint8Array) => bytes, decode: (bytes: Uint8Array) => bytes };
  return { ...method, requestType: same, responseType: same } as never;
}

const BY_PATH: ReadonlyMap<string, ReturnType<typeof raw>> = new Map(
  Object.values(KVService.methods).map((method) => [method.path, raw(method)]),
);

/** Ways to break the harness on purpose, to see that it says so. */
export const PLANTS = ["lost-write", "stale-read"] as const;
export type Plant = (typeof PLANTS)[number];
/** One in so many operations is hit by a plant. */
const PLANT_ONE_IN = 50;

/** How fast clients go, and for how long they wait. */
export interface Pace {
  readonly thinkMs: number;
  readonly callLimitMs: number;
}

/** The members that clients turn to. */
export interface Targets {
  readonly nodes: readonly {
    readonly name: string;
    readonly test: { readonly clientAddress: string };
  }[];
  readonly cluster: { readonly identity: ClientIdentity };
}

/** What all clients of a round know. */
export class Shared {
  readonly running: Targets;
  readonly recorder: Recorder;
  readonly pace: Pace;
  /** The revision at which the round began. */
  readonly base: number;
  /** The newest revision that anybody has seen. */
  lastRevision: number;
  /** Where each key was written last, as far as anybody has seen. */
  readonly lastMods = new Map<string, number>();
  stopped = false;
  /** Called with each revision that a client compacted. */
  compacted: (revision: number) => void = () => {};
  /** A way in which this harness is broken on purpose. */
  readonly plant: Plant | undefined;

  constructor(
    running: Targets,
    recorder: Recorder,
    pace: Pace,
    base: number,
    plant: Plant | undefined,
  ) {
    this.running = running;
    this.recorder = recorder;
    this.pace = pace;
    this.base = base;
    this.plant = plant;
    this.lastRevision = base;
  }

  learn(outcome: Outcome): void {
    if (outcome.kind !== "answered") return;
    this.lastRevision = Math.max(this.lastRevision, outcome.answer.revision);
    for (const one of outcome.answer.answers) {
      if (one.kind === "range") for (const { key, mod } of one.kvs) this.lastMods.set(key, mod);
    }
  }
}

/** How a read is done. */
export interface CallMode {
  readonly serializable?: boolean;
  readonly atRevision?: number;
}

/** One connection to one member, whose calls are in the history. */
export class RecordingClient {
  readonly name: string;
  readonly #shared: Shared;
  #member: number;
  #client: TestClient;
  #puts = 0;

  constructor(name: string, shared: Shared, member: number) {
    this.name = name;
    this.#shared = shared;
    this.#member = member;
    this.#client = this.#connect();
  }

  get member(): string {
    return this.#shared.running.nodes[this.#member].name;
  }

  get client(): TestClient {
    return this.#client;
  }

  #connect(): TestClient {
    const { running } = this.#shared;
    return new TestClient(running.nodes[this.#member].test.clientAddress, running.cluster.identity);
  }

  /** Turns to a member, with a new connection. */
  moveTo(member: number): void {
    this.#client.close();
    this.#member = member;
    this.#client = this.#connect();
  }

  /** Makes a call and notes it. Does not throw: the outcome says how it went. */
  async call(
    request: ModelRequest,
    mode: CallMode = {},
    limitMs = this.#shared.pace.callLimitMs,
  ): Promise<Outcome> {
    const { recorder, plant } = this.#shared;
    const { serializable = false, atRevision = 0 } = mode;
    // Planted: it asks for less than it writes down.
    const isStale = plant === "stale-read" && request.kind === "range";
    const { path, bytes } = encodeRequest(request, {
      serializable: serializable || isStale,
      atRevision,
    });
    const member = this.member;
    const calledAt = recorder.now();
    let outcome: Outcome;
    try {
      const answer = (await this.#client.call(BY_PATH.get(path)!, bytes, limitMs)) as Uint8Array;
      outcome = { kind: "answered", answer: decodeAnswer(request.kind, answer) };
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      const isRefused =
        REFUSALS.has(errorNameOf(error.details) ?? "") || NOT_SENT.test(error.details);
      outcome = { kind: isRefused ? "refused" : "unknown", error: error.details };
    }
    const returnedAt = recorder.now();
    if (
      plant === "lost-write" &&
      request.kind === "put" &&
      outcome.kind === "answered" &&
      ++this.#puts % PLANT_ONE_IN === 0
    ) {
      outcome = { kind: "refused", error: "planted: this write was answered" };
    }
    recorder.write({
      t: "op",
      client: this.name,
      member,
      request,
      serializable,
      atRevision,
      calledAt,
      returnedAt,
      outcome,
    });
    this.#shared.learn(outcome);
    return outcome;
  }

  /** Asks for a compaction and notes that; returns whether it was done. */
  async compact(revision: number): Promise<boolean> {
    const { recorder, pace } = this.#shared;
    const calledAt = recorder.now();
    const done = await this.#client
      .call(KVService.methods.Compact, { revision, physical: false }, pace.callLimitMs)
      .then(
        () => true,
        () => false,
      );
    recorder.write({
      t: "compaction",
      revision,
      calledAt,
      answeredAt: done ? recorder.now() : undefined,
    });
    if (done) this.#shared.compacted(revision);
    return done;
  }

  close(): void {
    this.#client.close();
  }
}

/** Lives until the round's clients are stopped. */
export async function liveAsClient(name: string, shared: Shared, random: Random): Promise<void> {
  const { running, pace } = shared;
  const client = new RecordingClient(name, shared, random.below(running.nodes.length));
  try {
    for (let turn = 0; !shared.stopped; turn++) {
      await delay(-Math.log(1 - random.unit()) * pace.thinkMs);
      if (shared.stopped) break;
      const isFine = await act(client, shared, random, turn);
      if (isFine && random.below(100) > 0) continue;
      if (!isFine) await delay(BACK_OFF_MS);
      client.moveTo(random.below(running.nodes.length));
    }
  } finally {
    client.close();
  }
}

/** One thing of a random kind; false if it was not answered. */
async function act(
  client: RecordingClient,
  shared: Shared,
  random: Random,
  turn: number,
): Promise<boolean> {
  const value = (): string =>
    `${client.name}.${turn}.${random.below(1_000_000)}${"v".repeat(random.below(40))}`;
  const dice = random.below(1000);
  let outcome: Outcome;
  if (dice < 3)
    return client.compact(Math.max(shared.base, shared.lastRevision - 50 - random.below(100)));
  if (dice < 350)
    outcome = await client.call({ kind: "put", key: sharedKey(random), value: value() });
  else if (dice < 420) outcome = await client.call({ kind: "delete", ...sharedRange(random) });
  else if (dice < 650) outcome = await client.call(randomTxn(shared, random, value));
  else if (dice < 740)
    outcome = await client.call({ kind: "range", ...sharedRange(random) }, { serializable: true });
  else if (dice < 790) {
    const atRevision = Math.max(shared.base, shared.lastRevision - random.below(30));
    outcome = await client.call({ kind: "range", ...sharedRange(random) }, { atRevision });
  } else outcome = await client.call({ kind: "range", ...sharedRange(random) });
  return outcome.kind === "answered";
}

const sharedKey = (random: Random): string =>
  `k${String.fromCharCode(97 + random.below(SHARED_KEYS))}`;

function sharedRange(random: Random): { key: string; end: string } {
  const key = sharedKey(random);
  if (random.below(5) > 0) return { key, end: "" };
  return random.below(2) === 0 ? SHARED : { key, end: `${key}~` };
}

/** Mostly a compare-and-swap on what was seen last; sometimes more at once. */
function randomTxn(shared: Shared, random: Random, value: () => string): ModelRequest {
  const key = sharedKey(random);
  const other = sharedKey(random);
  const success: ModelOp[] = [{ kind: "put", key, value: `${value()}s` }];
  if (other !== key && random.below(2) === 0) {
    success.push(
      random.below(2) === 0
        ? { kind: "put", key: other, value: `${value()}o` }
        : { kind: "delete", key: other, end: "" },
    );
  }
  if (random.below(4) === 0) success.push({ kind: "range", ...SHARED });
  const failure: ModelOp[] =
    random.below(4) === 0
      ? [{ kind: "put", key: other, value: `${value()}f` }]
      : [{ kind: "range", key, end: "" }];
  const operand = shared.lastMods.get(key) ?? 0;
  return {
    kind: "txn",
    compares: [{ key, target: "mod", result: random.below(5) === 0 ? ">" : "=", operand }],
    success,
    failure,
  };
}
