/**
 * /kv against a naive model: random requests with random preconditions, on few keys, so that they
 * meet. A failure prints its seed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { type KvClient, startedKv } from "./support/http-kv.ts";

interface Pair {
  readonly value: string;
  readonly create: number;
  readonly mod: number;
  readonly version: number;
}

/** One state of the store. */
type State = ReadonlyMap<string, Pair>;

/** The keys and every state that they were in. */
class Model {
  revision = 1;
  readonly states: State[] = [new Map(), new Map()];

  get now(): State {
    return this.states[this.revision];
  }

  put(key: string, value: string): Pair {
    const before = this.now.get(key);
    this.revision++;
    const pair: Pair = {
      value,
      create: before?.create ?? this.revision,
      mod: this.revision,
      version: (before?.version ?? 0) + 1,
    };
    this.states.push(new Map([...this.states[this.revision - 1], [key, pair]]));
    return pair;
  }

  remove(keys: readonly string[]): void {
    if (keys.length === 0) return;
    this.revision++;
    const left = [...this.states[this.revision - 1]].filter(([key]) => !keys.includes(key));
    this.states.push(new Map(left));
  }
}

interface Conditions {
  match: "*" | number[] | undefined;
  noneMatch: "*" | number[] | undefined;
}

/** RFC 9110, sections 13.1.1 and 13.1.2, for strong tags. */
function holds(conditions: Conditions, pair: Pair | undefined): "yes" | "match" | "none-match" {
  const has = (tags: "*" | number[]) =>
    pair !== undefined && (tags === "*" || tags.includes(pair.mod));
  if (conditions.match !== undefined && !has(conditions.match)) return "match";
  if (conditions.noneMatch !== undefined && has(conditions.noneMatch)) return "none-match";
  return "yes";
}

const KEYS = ["a", "a/1", "a/2", "ab", "b", "b/\u00e9"];

function pick<T>(random: SeededRandom, items: readonly T[]): T {
  return items[random.below(items.length)];
}

/** One run: requests to a member, and the model beside it. */
class Run {
  readonly #kv: KvClient;
  readonly #random: SeededRandom;
  readonly #model = new Model();

  constructor(kv: KvClient, random: SeededRandom) {
    this.#kv = kv;
    this.#random = random;
  }

  async step(i: number): Promise<void> {
    const kinds = ["GET", "HEAD", "PUT", "PUT", "PUT", "DELETE", "LIST", "CLEAR", "OLD"];
    const kind = pick(this.#random, kinds);
    if (kind === "LIST") await this.#list();
    else if (kind === "CLEAR") await this.#clear();
    else await this.#one(kind, i);
  }

  async #list(): Promise<void> {
    const random = this.#random;
    const prefix = pick(random, ["", "a", "a/", "b/", "c"]);
    const limit = 1 + random.below(4);
    const after = pick(random, ["", ...KEYS]);
    const rev = 1 + random.below(this.#model.revision);
    const query = `prefix&limit=${limit}&after=${encodeURIComponent(after)}&rev=${rev}`;
    const { text } = await this.#kv.ask("GET", `/kv/${encodeURIComponent(prefix)}?${query}`);
    const lines = text.split("\n").slice(0, -1);
    const wanted = [...this.#model.states[rev]]
      .filter(([name]) => name.startsWith(prefix) && (after === "" || name > after))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([key, { value, create, mod, version }]) => ({
        key,
        value,
        create_revision: create,
        mod_revision: mod,
        version,
      }));
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)),
      wanted,
      query,
    );
  }

  async #clear(): Promise<void> {
    if (this.#random.below(4) > 0) return;
    const { status } = await this.#kv.ask("DELETE", "/kv/a/?prefix");
    assert.equal(status, 200);
    const keys = [...this.#model.now.keys()];
    this.#model.remove(keys.filter((key) => key.startsWith("a/")));
  }

  async #one(kind: string, i: number): Promise<void> {
    const model = this.#model;
    const key = pick(this.#random, KEYS);
    const conditions: Conditions = { match: this.#tags(key), noneMatch: this.#tags(key) };
    const isOld = kind === "OLD";
    const method = isOld ? "GET" : kind;
    const rev = isOld ? 1 + this.#random.below(model.revision) : model.revision;
    const before = model.states[rev].get(key);
    const target = `/kv/${encodeURIComponent(key)}${isOld ? `?rev=${rev}` : ""}`;
    const headers = headersOf(conditions);
    const value = `value ${i}`;
    const body = method === "PUT" ? { body: value } : {};
    const answer = await this.#kv.ask(method, target, { headers, ...body });
    const { status, after } = this.#expected(method, key, value, before, conditions);
    const where = `request ${i}: ${method} ${target} ${JSON.stringify(headers)}: ${answer.text}`;
    assert.equal(answer.status, status, where);
    assert.equal(answer.headers["quorate-revision"], String(model.revision), where);
    assert.equal(answer.headers["etag"], after === undefined ? undefined : `"${after.mod}"`, where);
    assert.equal(answer.headers["quorate-version"], after && String(after.version), where);
    assert.equal(answer.headers["quorate-create-revision"], after && String(after.create), where);
    if (status === 200 && method === "GET") assert.equal(answer.text, before!.value, where);
    if (method === "HEAD") assert.equal(answer.text, "", where);
  }

  /** What a request must come to, and the key after it; the model changes with it. */
  #expected(
    method: string,
    key: string,
    value: string,
    before: Pair | undefined,
    conditions: Conditions,
  ): { readonly status: number; readonly after: Pair | undefined } {
    const verdict = holds(conditions, before);
    const isWrite = method === "PUT" || method === "DELETE";
    if (verdict === "match" || (isWrite && verdict === "none-match"))
      return { status: 412, after: before };
    if (method === "PUT")
      return { status: before === undefined ? 201 : 204, after: this.#model.put(key, value) };
    if (before === undefined) return { status: 404, after: before };
    if (method !== "DELETE") return { status: verdict === "yes" ? 200 : 304, after: before };
    this.#model.remove([key]);
    return { status: 204, after: undefined };
  }

  #tags(key: string): Conditions["match"] {
    const random = this.#random;
    if (random.below(2) === 0) return undefined;
    if (random.below(3) === 0) return "*";
    return Array.from({ length: 1 + random.below(3) }, () => {
      const mod = this.#model.now.get(key)?.mod;
      return mod === undefined || random.below(3) === 0
        ? 1 + random.below(this.#model.revision)
        : mod;
    });
  }
}

function headersOf({ match, noneMatch }: Conditions): Record<string, string> {
  const text = (tags: "*" | number[]) =>
    tags === "*" ? "*" : tags.map((tag) => (tag % 2 === 0 ? `"${tag}"` : tag)).join(", ");
  return {
    ...(match !== undefined && { "if-match": text(match) }),
    ...(noneMatch !== undefined && { "if-none-match": text(noneMatch) }),
  };
}

for (const seed of [1n, 2n, 3n]) {
  test(`random requests are served as a naive model serves them (seed ${seed})`, async () => {
    const { world, kv } = await startedKv();
    const run = new Run(kv, new SeededRandom(seed));
    for (let i = 0; i < 400; i++) await run.step(i);
    await world.stopAll();
  });
}
