/** What a program under the simulator is given, and what comes of it. */
import type { Client } from "@quorate/client";

/** Simulated time. */
export interface SimulatedClock {
  /** Milliseconds since the start of the world. */
  now(): number;
  /** Resolves after so many milliseconds, and not while the client of the clock is paused. */
  sleep(ms: number): Promise<void>;
}

/** A client in a process of its own. */
export interface SimulatedClient extends Client {
  readonly name: string;
  readonly clock: SimulatedClock;
}

/** Faults for a program. Members have numbers from 0; times are simulated milliseconds. */
export interface SimulatedNemesis {
  /** A client's process does nothing for so long, as in a long garbage collection. */
  pauseClient(client: SimulatedClient, ms: number): void;
  /** A member's process does nothing for so long. */
  pauseMember(member: number, ms: number): void;
  /** A member's process is killed; it comes up again after a while, or with `startMember`. */
  killMember(member: number): void;
  startMember(member: number): void;
  /** A member hears no other one, and is heard by none, for so long. Clients reach it. */
  isolateMember(member: number, ms: number): void;
  /** The number of the member that leads; undefined while none does. */
  leader(): number | undefined;
  /** From now on nothing goes wrong by itself, and what did is put right. */
  stop(): void;
}

/** How a program is run. */
export interface ProgramOptions {
  /** Clients of the program; default 3. */
  readonly clients?: number;
  /** Members of the cluster, from 1 to 7; default 3. */
  readonly members?: number;
  /** Whether things go wrong by themselves; default true. Without, only what the program does. */
  readonly faults?: boolean;
  /** Within this simulated time the program must end; default 600,000 ms. */
  readonly limitMs?: number;
}

/** What a program is given. */
export interface ProgramWorld {
  readonly clients: readonly SimulatedClient[];
  readonly nemesis: SimulatedNemesis;
  /** The time of the world; that of a client stands still while it is paused. */
  readonly clock: SimulatedClock;
  /** A number from 0 to below 1, decided by the seed. */
  random(): number;
}

/** What runs under the simulator: a program with its clients and clock. */
export type Program = (world: ProgramWorld) => Promise<unknown>;

/** What came of a run. */
export interface ProgramRun {
  readonly simulatedMs: number;
  /** Over all that happened: the same for the same seed, program and code. */
  readonly hash: string;
  /** What the program, or the judge of the members, found; undefined: nothing. */
  readonly failure: unknown;
  /** The last that happened to each member and client, in words. */
  readonly story: string;
}
