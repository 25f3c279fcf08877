/** Flags below flags/, as JSON: {"percent": 0 to 100}. They are read in memory. */
import { createHash } from "node:crypto";
import { Cache, type Client, toUtf8 } from "@quorate/client";

const PREFIX = "flags/";

export class Flags implements AsyncDisposable {
  readonly #cache: Cache;

  private constructor(cache: Cache) {
    this.#cache = cache;
  }

  static async open(client: Client): Promise<Flags> {
    return new Flags(await Cache.open(client, PREFIX, { prefix: true }));
  }

  /** Whether a flag is on for a user: always the same share of users. An unknown flag is off. */
  isOn(flag: string, user: string): boolean {
    const record = this.#cache.get(`${PREFIX}${flag}`);
    if (record === undefined) return false;
    const { percent } = JSON.parse(toUtf8(record.value)) as { percent: number };
    const hash = createHash("sha256").update(`${flag} ${user}`).digest().readUInt32BE(0);
    return (hash % 10_000) / 100 < percent;
  }

  /** Resolves when changes up to a revision are seen, such as that of an own `set`. */
  reached(revision: number): Promise<void> {
    return this.#cache.reached(revision);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cache[Symbol.asyncDispose]();
  }
}

/** Turns a flag on for a share of the users. Resolves with the revision of the change. */
export async function setFlag(client: Client, flag: string, percent: number): Promise<number> {
  const { header } = await client.put(`${PREFIX}${flag}`, JSON.stringify({ percent }));
  return header.revision;
}
