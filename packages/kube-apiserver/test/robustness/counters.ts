/** Clients that count up objects as controllers do: read, change, write with the revision read. */
import { setTimeout as delay } from "node:timers/promises";
import type { ApiClient } from "./api-client.ts";

const CONFLICT = 409;
/** What lists and watches select: the server has objects of its own. */
export const SELECTOR = "kill=yes";
const LABELS = { kill: "yes" };

/** What is known of a counter. */
interface Known {
  /** Writes that were acknowledged. */
  acknowledged: number;
  /** Writes without a response: each may have happened or not. */
  unknown: number;
}

export class Counters {
  readonly #clients: readonly ApiClient[];
  readonly #path: string;
  readonly known = new Map<string, Known>();
  conflicts = 0;
  failures = 0;
  isOver = false;

  constructor(clients: readonly ApiClient[], path: string, names: readonly string[]) {
    this.#clients = clients;
    this.#path = path;
    for (const name of names) this.known.set(name, { acknowledged: 0, unknown: 0 });
  }

  async create(): Promise<void> {
    for (const name of this.known.keys()) {
      const object = {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name, labels: LABELS },
        data: { count: "0" },
      };
      const { code, body } = await this.#clients[0].call("POST", this.#path, object);
      if (code !== 201) throw new Error(`create ${name}: ${code} ${JSON.stringify(body)}`);
    }
  }

  /** Counts until the run is over. @param first which of the servers it begins with */
  async count(first: number, pick: () => number): Promise<void> {
    const names = [...this.known.keys()];
    for (let next = first; !this.isOver; ) {
      const name = names[pick() % names.length];
      try {
        await this.#increment(this.#clients[next % this.#clients.length], name);
      } catch {
        this.failures++;
        next++;
        await delay(50);
      }
    }
  }

  async #increment(client: ApiClient, name: string): Promise<void> {
    const path = `${this.#path}/${name}`;
    const read = await client.call("GET", path);
    if (read.code !== 200) throw new Error(`get: ${read.code}`);
    const data = { count: String(Number(read.body.data.count) + 1) };
    const known = this.known.get(name)!;
    known.unknown++;
    const { code } = await client.call("PUT", path, { ...read.body, data });
    if (code === 200) {
      known.acknowledged++;
      known.unknown--;
    } else if (code === CONFLICT) {
      this.conflicts++;
      known.unknown--;
    } else {
      throw new Error(`put: ${code}`);
    }
  }

  /** What is wrong with the values of a list. */
  problemsOf(values: ReadonlyMap<string, number>): string[] {
    return [...this.known].flatMap(([name, { acknowledged, unknown }]) => {
      const value = values.get(name) ?? -1;
      if (value >= acknowledged && value <= acknowledged + unknown) return [];
      return [`${name} is ${value}: ${acknowledged} acknowledged, ${unknown} unknown`];
    });
  }

  get acknowledged(): number {
    let sum = 0;
    for (const known of this.known.values()) sum += known.acknowledged;
    return sum;
  }
}
