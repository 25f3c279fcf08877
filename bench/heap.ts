/**
 * What members allocate in V8's heap, as V8 counts it on their main threads. Members are to be
 * started with `heapEnv`, which loads heap-agent.js into them. Buffers' own memory is not counted:
 * V8 does not count it up.
 */
import { createConnection, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import type { AllocationProfile } from "./cpu-profile.ts";

const AGENT = pathToFileURL(join(import.meta.dirname, "heap-agent.js")).href;

/** The environment of members whose heaps are to be read. */
export const heapEnv: Readonly<Record<string, string>> = {
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

/** The heap of one member. */
class HeapAgent {
  readonly #socket: Socket;
  readonly #lines: AsyncIterator<string>;

  constructor(pid: number) {
    this.#socket = createConnection({ path: `\0quorate-heap-${pid}` });
    this.#lines = createInterface(this.#socket)[Symbol.asyncIterator]();
  }

  /** @throws Error where the process has no agent */
  async ask(command: "begin" | "end" | "sample" | "samples"): Promise<unknown> {
    this.#socket.write(`${command}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error("a member tells nothing of its heap");
    return JSON.parse(value);
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** The heaps of members, by their process ids. */
export class Heaps {
  readonly #agents: readonly HeapAgent[];

  constructor(pids: readonly number[]) {
    this.#agents = pids.map((pid) => new HeapAgent(pid));
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

  /** Begins to note which functions allocate. */
  async sample(): Promise<void> {
    await this.#ask("sample");
  }

  /** The samples of each member since `sample`. */
  async samples(): Promise<AllocationProfile[]> {
    return (await this.#ask("samples")) as AllocationProfile[];
  }

  close(): void {
    for (const agent of this.#agents) agent.close();
  }

  #ask(command: "begin" | "end" | "sample" | "samples"): Promise<unknown[]> {
    return Promise.all(this.#agents.map((agent) => agent.ask(command)));
  }
}
