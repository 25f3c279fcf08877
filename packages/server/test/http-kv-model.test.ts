/**
 * /kv against a naive model: random requests with random preconditions, on few keys, so that they
 * meet. A failure prints its seed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { startedKv } from "./support/http-kv.ts";

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

for (const seed of [1n, 2n, 3n]) {
  test(`random requests are served as a naive model serves them (seed ${seed})`, async () => {
    const { world, kv } = await startedKv();
    const random = new SeededRandom(seed);
    const model = new Model();
    const tag = (key: string) => {
      const mod = model.now.get(key)?.mod;
      return mod === undefined || random.below(3) === 0 ? 1 + random.below(model.revision) : mod;
    };
    const tags = (key: string): Conditions["match"] => {
      if (random.below(2) === 0) return undefined;
      if (random.below(3) === 0) return "*";
      return Array.from({ length: 1 + random.below(3) }, () => tag(key));
    };
    const text = (value: Exclude<Conditions["match"], undefined>) =>
      value === "*" ? "*" : value.map((one) => (one % 2 === 0 ? `"${one}"` : one)).join(", ");
    for (let i = 0; i < 400; i++) {
      const key = pick(random, KEYS);
      const target = `/kv/${encodeURIComponent(key)}`;
      const conditions: Conditions = { match: tags(key), noneMatch: tags(key) };
      const headers: Record<string, string> = {};
      if (conditions.match !== undefined) headers["if-match"] = text(conditions.match);
      if (conditions.noneMatch !== undefined) headers["if-none-match"] = text(conditions.noneMatch);
      const method = pick(random, [
        "GET",
        "HEAD",
        "PUT",
        "PUT",
        "PUT",
        "DELETE",
        "LIST",
        "CLEAR",
        "OLD",
      ]);
      const where = `request ${i}: ${method} ${target} ${JSON.stringify(headers)}`;
      if (method === "LIST") {
        const prefix = pick(random, ["", "a", "a/", "b/", "c"]);
        const limit = 1 + random.below(4);
        const after = pick(random, ["", ...KEYS]);
        const rev = 1 + random.below(model.revision);
        const query = `prefix&limit=${limit}&after=${encodeURIComponent(after)}&rev=${rev}`;
        const { text: body } = await kv.ask("GET", `/kv/${encodeURIComponent(prefix)}?${query}`);
        const found = body
          .split("\n")
          .slice(0, -1)
          .map((line) => JSON.parse(line));
        const wanted = [...model.states[rev]]
          .filter(([name]) => name.startsWith(prefix) && (after === "" || name > after))
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .slice(0, limit)
          .map(([name, { value, create, mod, version }]) => ({
            ...{ key: name, value, create_revision: create, mod_revision: mod, version },
          }));
        assert.deepEqual(found, wanted, `${where} ${query}`);
        continue;
      }
      if (method === "CLEAR") {
        if (random.below(4) > 0) continue;
        const { status } = await kv.ask("DELETE", "/kv/a/?prefix");
        assert.equal(status, 200);
        model.remove([...model.now.keys()].filter((name) => name.startsWith("a/")));
        continue;
      }
      const rev = method === "OLD" ? 1 + random.below(model.revision) : model.revision;
      const value = `value ${i}`;
      const real = method === "OLD" ? "GET" : method;
      const before = model.states[rev].get(key);
      const answer = await kv.ask(real, method === "OLD" ? `${target}?rev=${rev}` : target, {
        headers,
        ...(method === "PUT" && { body: value }),
      });
      const verdict = holds(conditions, before);
      let status: number;
      let after = before;
      if (verdict === "match") status = 412;
      else if (real === "PUT") {
        status = verdict === "yes" ? (before === undefined ? 201 : 204) : 412;
        if (verdict === "yes") after = model.put(key, value);
      } else if (real === "DELETE") {
        status = verdict === "yes" ? (before === undefined ? 404 : 204) : 412;
        if (status === 204) {
          model.remove([key]);
          after = undefined;
        }
      } else if (before === undefined) status = 404;
      else status = verdict === "yes" ? 200 : 304;
      assert.equal(answer.status, status, `${where}: ${answer.text}`);
      assert.equal(answer.headers["quorate-revision"], String(model.revision), where);
      assert.equal(
        answer.headers["etag"],
        after === undefined ? undefined : `"${after.mod}"`,
        where,
      );
      assert.equal(answer.headers["quorate-version"], after && String(after.version), where);
      assert.equal(answer.headers["quorate-create-revision"], after && String(after.create), where);
      if (status === 200 && real === "GET") assert.equal(answer.text, before!.value, where);
      if (real === "HEAD") assert.equal(answer.text, "", where);
    }
    await world.stopAll();
  });
}
