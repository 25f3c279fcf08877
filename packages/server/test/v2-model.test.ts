/**
 * Random requests of the v2 API to a member in memory and to a naive store: responses, the end of
 * TTLs, and waits with history agree.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { pick } from "../../../test/support/random.ts";
import { V2Client } from "./support/v2.ts";
import { formText } from "./support/v2-form.ts";
import { type ModelRequest, V2Model } from "./support/v2-model.ts";
import { World } from "./support/world.ts";

const ROUNDS = Number(process.env["QUORATE_V2_ROUNDS"] ?? 2);
const SEED = BigInt(process.env["QUORATE_V2_SEED"] ?? 1);
/** Requests of a round; they take less simulated time than the shortest TTL. */
const REQUESTS = 40;
const TTL_SECONDS = 60;
const NAMES = ["a", "b", "c", "_h", "a-b", "d.e"];

function randomPath(random: SeededRandom): string[] {
  const depth = random.below(15) === 0 ? 0 : 1 + random.below(3);
  return Array.from({ length: depth }, () => pick(random, NAMES));
}

function randomRequest(random: SeededRandom, index: number): ModelRequest {
  const one = (chances: number) => random.below(chances) === 0;
  const method = pick(random, ["PUT", "PUT", "PUT", "GET", "GET", "POST", "DELETE", "DELETE"]);
  const isWrite = method === "PUT" || method === "POST";
  const isPut = method === "PUT";
  const ttl = isWrite && one(4);
  const refresh = isPut && ttl && one(2);
  return {
    method,
    path: randomPath(random),
    ttl,
    refresh,
    value: isWrite && !refresh && one(2) ? pick(random, ["x", "y", "z"]) : "",
    dir: (isWrite && one(4)) || (method === "DELETE" && one(3)),
    recursive: !isWrite && one(3),
    prevExist: isPut && one(4) ? one(2) : undefined,
    prevValue: (isPut || method === "DELETE") && one(6) ? pick(random, ["x", "y"]) : "",
    prevIndex: (isPut || method === "DELETE") && one(8) ? Math.max(1, index - random.below(6)) : 0,
  };
}

function send(client: V2Client, request: ModelRequest) {
  const { method, path, ttl, refresh, prevIndex, prevValue } = request;
  const fields = formText({
    value: request.value || undefined,
    dir: request.dir || undefined,
    recursive: request.recursive || undefined,
    sorted: true,
    quorum: true,
    ttl: ttl ? TTL_SECONDS : undefined,
    refresh: refresh || undefined,
    prevExist: request.prevExist,
    prevValue: prevValue || undefined,
    prevIndex: prevIndex || undefined,
  });
  const isForm = method === "PUT" || method === "POST";
  const key = `/v2/keys${path.map((name) => `/${name}`).join("")}`;
  return client.send(method, key, isForm ? "" : fields, isForm ? fields : "");
}

/** A body without times. */
function timeless(json: unknown): unknown {
  return JSON.parse(JSON.stringify(json), function (this: unknown, key: string, value: unknown) {
    return key === "expiration" || key === "ttl" ? undefined : value;
  });
}

test(`random requests agree with a naive store (seed ${SEED})`, async (t) => {
  const world = new World(1);
  t.after(() => world.stopAll());
  await world.startAll();
  const member = world.leader()!.member!;
  const client = new V2Client(world, member);
  const model = new V2Model(member.store.mvcc.currentRevision);
  const random = new SeededRandom(SEED);
  for (let round = 0; round < ROUNDS; round++) {
    const first = model.index + 1;
    for (let i = 0; i < REQUESTS; i++) {
      const request = randomRequest(random, model.index);
      const expected = model.answer(request);
      const { status, json, headers } = await send(client, request);
      const shown = `round ${round}, request ${i}: ${JSON.stringify(request)}`;
      assert.deepEqual({ status, json: timeless(json) }, expected, shown);
      assert.equal(headers["x-etcd-index"], String(model.index), shown);
      // Two TTLs that end within one look of the leader's may end in any order.
      if (request.ttl) await world.run(150);
    }
    await agreeOnWaits(world, client, model, random, first);
    // A round is shorter than the TTL, and this is longer: everything with a TTL ends now.
    await world.run((TTL_SECONDS + 30) * 1000);
    model.expireAll();
    assert.equal(member.store.mvcc.currentRevision, model.index, `round ${round}`);
  }
});

/** Events that have happened before the last expiry, whose order is not the model's. */
async function agreeOnWaits(
  world: World,
  client: V2Client,
  model: V2Model,
  random: SeededRandom,
  first: number,
): Promise<void> {
  for (let i = 0; i < 6; i++) {
    const path = random.below(3) === 0 ? [] : randomPath(random);
    const recursive = random.below(2) === 0;
    const waitIndex = Math.max(first, model.index - random.below(30));
    const expected = model.eventFrom(path, recursive, waitIndex);
    const key = path.map((name) => `/${name}`).join("");
    const exchange = client.wait(key, { recursive, waitIndex });
    await world.run(60);
    const shown = `wait ${key} ${recursive} from ${waitIndex}`;
    assert.equal(exchange.status, 200, shown);
    if (expected === undefined) assert.equal(exchange.text, "", shown);
    else if ((expected as { action: string }).action !== "expire")
      assert.deepEqual(timeless(JSON.parse(exchange.text || "null")), expected, shown);
    exchange.listener.aborted?.();
  }
  await world.run(10);
  assert.equal((await client.send("GET", "/v2/stats/store")).json.watchers, 0);
}
