/**
 * Paths that lead to keys over HTTP, tried at random by a user who may read and write below "ann/"
 * alone: none reads, shows or changes another key, however the path is written.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { AuthService, fromUtf8, KeyValue, KVService, toUtf8 } from "@quorate/proto";
import { KvClient } from "./support/http-kv.ts";
import { callAs, enableAuth, login } from "./support/users.ts";
import { V2Client } from "./support/v2.ts";
import { World } from "./support/world.ts";

const SEED = 26n;
/** Requests of one run; QUORATE_RANDOM_PATHS sets another count. */
const COUNT = Number(process.env["QUORATE_RANDOM_PATHS"] ?? 3_000);
const SECRET = "hush-hush";

const random = new SeededRandom(SEED);
const pick = <T>(list: readonly T[]): T => list[random.below(list.length)];

const SEGMENTS = [
  "ann",
  "ann",
  "ann",
  "bob",
  "bob",
  "bob",
  "k",
  "k",
  "",
  ".",
  "..",
  "%2F",
  "%2e%2e",
  "a%6en",
  "ann%2F..",
  "..%2Fbob",
  "bob%2Fk",
  "%00",
  "%ff",
  "ann%00",
  "ann0",
  "ann.",
  "v2",
  "keys",
  "+",
];
const METHODS = ["GET", "GET", "PUT", "POST", "DELETE", "HEAD", "PATCH"];
const QUERIES: Readonly<Record<string, readonly string[]>> = {
  kv: [
    "",
    "",
    "prefix",
    "prefix&all",
    "prefix&limit=1",
    "prefix&after=a",
    "after=bob&prefix",
    "keys",
  ],
  v2: [
    "",
    "",
    "recursive=true",
    "recursive=true&sorted=true",
    "dir=true",
    "wait=false",
    "prevExist=true",
    "prevValue=x",
    "prevIndex=1",
    "recursive=true&dir=true",
    "quorum=true",
  ],
};

function randomPath(): string {
  const count = random.below(4);
  const parts = [...Array(count + 1)].map(() => pick(SEGMENTS));
  return parts.join(pick(["/", "/", "/", "//", "%2F"]));
}

/** A member whose user "ann" may do everything below "ann/" (and v2's ann), and another's keys. */
async function started() {
  const world = new World(1);
  await world.startAll();
  const member = world.leader()!.member!;
  const root = await enableAuth(world, member, "ann");
  const range = (start: string, end: string) =>
    callAs(member, root, AuthService.methods.RoleGrantPermission, {
      name: "ann",
      perm: { permType: 2, key: fromUtf8(start), rangeEnd: fromUtf8(end) },
    });
  await world.settled(range("ann/", "ann0"));
  await world.settled(range("/v2/keys/ann/", "/v2/keys/ann0"));
  const rootClient = new V2Client(world, member, { headers: { authorization: root } });
  for (const path of ["/bob/k", "/bob/ann/k", "/k", "/annex/k"])
    assert.equal((await rootClient.put(path, { value: SECRET })).status, 201);
  const put = (key: string) =>
    callAs(member, root, KVService.methods.Put, { key: fromUtf8(key), value: fromUtf8(SECRET) });
  for (const key of ["bob/k", "bob", "k", "ann", "annex/k", "/ann/k", "//k", "ann0"])
    await world.settled(put(key));
  const everything = async () => {
    const all = { key: new Uint8Array(1), rangeEnd: new Uint8Array(1) };
    const { kvs } = await world.settled(callAs(member, root, KVService.methods.Range, all));
    return kvs
      .map((kv) => KeyValue.decode(kv))
      .map(({ key, value, modRevision }) => [toUtf8(key), toUtf8(value), String(modRevision)])
      .filter(([key]) => !key.startsWith("ann/") && !key.startsWith("/v2/keys/ann/"))
      .filter(([, value]) => value.includes(SECRET));
  };
  return { world, member, everything };
}

test(`${COUNT} random paths of keys reach nothing beyond the role`, async () => {
  const { world, member, everything } = await started();
  const before = await everything();
  assert.ok(before.length >= 12);
  const headers = { authorization: await world.settled(login(member, "ann")) };
  const kv = new KvClient(world, member);
  const v2 = new V2Client(world, member, { headers });
  const counts = { served: 0, refused: 0 };
  for (let at = 0; at < COUNT; at++) {
    const method = pick(METHODS);
    const path = randomPath();
    const isKv = random.below(2) === 0;
    const query = pick(QUERIES[isKv ? "kv" : "v2"]);
    const what = `${method} ${isKv ? "/kv/" : "/v2/keys/"}${path}?${query}`;
    const body = method === "PUT" || method === "POST" ? "value=mine" : "";
    const answer = isKv
      ? await kv.ask(method, `/kv/${path}?${query}`, { headers, body })
      : await v2.send(method, `/v2/keys/${path}`, query, body);
    assert.ok(!answer.text.includes(SECRET), `${what}: ${answer.status} ${answer.text}`);
    if (answer.status! < 300) counts.served++;
    if (answer.status === 401 || answer.status === 403) counts.refused++;
  }
  assert.deepEqual(await everything(), before);
  for (const [name, count] of Object.entries(counts))
    assert.ok(count > COUNT / 50, `only ${count} ${name}`);
  await world.stopAll();
});
