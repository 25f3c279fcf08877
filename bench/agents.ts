/**
 * What members tell of themselves: what they allocate in V8's heap, as V8 counts it on their main
 * threads, and what held their event loops. Members are to be started with `agentEnv`, which loads
 * agent.js into them. Buffers' own memory is not counted: V8 does not count it up.
 */
import { createConnection, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import type { AllocationProfile } from "./cpu-profile.ts";

const AGENT = pathToFileURL(join(import.meta.dirname, "agent.js")).href;

/** The environment of members that are to be asked. */
export const agentEnv: Readonly<Record<string, string>> = {
  NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --import=${AGENT}`.trim(),
};

/** What was allocated from a `begin` to an `end`. */
export interface HeapUse {
  readonly allocatedBytes: number;
  /**
   * Of young objects that collections left alive. An object that stays young for two collections
   * counts twice.
   */
  readonly survivedBytes: number;
}

type Command = "begin" | "end" | "sample" | "sampleSurvivors" | "samples" | "trace" | "traced";

/** Something that took at least half a millisecond in a member. */
export interface Noted {
  /** Such as "full collection", "loop, TCPWRAP" (a callback), "LevelDB, another thread". */
  readonly what: string;
  /** On the machine's monotonic clock. */
  readonly fromMs: number;
  readonly durationMs: number;
}

/** The agent in one member. */
class Agent {
  readonly #socket: Socket;
  readonly #lines: AsyncIterator<string>;

  constructor(pid: number) {
    this.#socket = createConnection({ path: `\0quorate-heap-${pid}` });
    this.#lines = createInterface(this.#socket)[Symbol.asyncIterator]();
  }

  /** @throws Error where the process has no agent */
  async ask(command: Command): Promise<unknown> {
    this.#socket.write(`${command}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error("a member tells nothing of itself");
    return JSON.parse(value);
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** The agents in members, by their process ids. */
export class Agents {
  readonly #agents: readonly Agent[];

  constructor(pids: readonly number[]) {
    this.#agents = pids.map((pid) => new Agent(pid));
  }

  /** Begins to count. */
  async begin(): Promise<void> {
    await this.#ask("begin");
  }

  /** What all members have allocated since `begin`. */
  async end(): Promise<HeapUse> {
    const uses = (await this.#ask("end")) as HeapUse[];
    const sum = (figure: (use: HeapUse) => number) =>
      uses.reduce((total, use) => total + figure(use), 0);
    return {
      allocatedBytes: sum((use) => use.allocatedBytes),
      survivedBytes: sum((use) => use.survivedBytes),
    };
  }

  /**
   * Begins to note which functions allocate. @param isOfSurvivors only what no collection of young
   * objects takes counts
   */
  async sample(isOfSurvivors: boolean): Promise<void> {
    await this.#ask(isOfSurvivors ? "sampleSurvivors" : "sample");
  }

  /** The samples of each member since `sample`. */
  async samples(): Promise<AllocationProfile[]> {
    return (await this.#ask("samples")) as AllocationProfile[];
  }

  /** Begins to note what holds the loops, which costs them some of their time. */
  async trace(): Promise<void> {
    await this.#ask("trace");
  }

  /** What the members noted since `trace`, or since the last call. */
  async traced(): Promise<Noted[][]> {
    return (await this.#ask("traced")) as Noted[][];
  }

  close(): void {
    for (const agent of this.#agents) agent.close();
  }

  #ask(command: Command): Promise<unknown[]> {
    return Promise.all(this.#agents.map((agent) => agent.ask(command)));
  }
}
