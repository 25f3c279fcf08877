/** The v2 API's reads and writes, on a member in memory. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { V2Client } from "./support/v2.ts";
import { World } from "./support/world.ts";

let world: World;
let v2: V2Client;

before(async () => {
  world = new World(1);
  await world.startAll();
  v2 = new V2Client(world, world.leader()!.member!);
});

test("try", async () => {
  const show = async (p: Promise<{ status: number; text: string; headers: object }>) => {
    const { status, text } = await p;
    console.log(status, text.trim());
  };
  await show(v2.get("/"));
  await show(v2.put("/foo", { value: "bar" }));
  await show(v2.put("/foo", { value: "baz<é>" }));
  await show(v2.get("/foo"));
  await show(v2.get("/nope/x"));
  await show(v2.get("/foo/x"));
  await show(v2.put("/foo/x", { value: 1 }));
  await show(v2.put("/a/b/c", { value: 1 }));
  await show(v2.put("/a/b/_h", { value: 1 }));
  await show(v2.get("/a/b/_h"));
  await show(v2.get("/", { recursive: true, sorted: true }));
  await show(v2.get("/a"));
  await show(v2.put("/a", { value: 2 }));
  await show(v2.put("/foo", { value: 2, prevExist: false }));
  await show(v2.put("/foo", { value: 2, prevExist: true }));
  await show(v2.put("/foo", { value: 3, prevValue: "x" }));
  await show(v2.put("/foo", { value: 3, prevValue: "2" }));
  await show(v2.put("/foo", { value: 3, prevIndex: 1000, prevValue: "x" }));
  await show(v2.delete("/a"));
  await show(v2.delete("/a", { dir: true }));
  await show(v2.delete("/a", { recursive: true }));
  await show(v2.delete("/foo", { prevValue: "3" }));
  await show(v2.post("/q", { value: 1 }));
  await show(v2.post("/q", { value: 2 }));
  await show(v2.get("/q", { sorted: true }));
  await show(v2.put("/t", { value: 2, ttl: 5 }));
  await show(v2.get("/t"));
  await show(v2.put("/t", { ttl: 6, refresh: true }));
  await show(v2.put("/d", { dir: true, ttl: 3 }));
  await show(v2.put("/d/x/y", { value: 1 }));
  await show(v2.put("/d", { dir: true, ttl: 4, prevExist: true }));
  const w = v2.wait("/d/x/y");
  const w2 = v2.wait("/", { recursive: true, stream: true });
  await world.run(9000);
  await show(v2.get("/t"));
  await show(v2.get("/d/x"));
  console.log(w.status, w.headers, w.text, w.state);
  console.log(w2.status, w2.headers, w2.text);
  await show(v2.send("GET", "/v2/members"));
  await show(v2.send("GET", "/v2/stats/self"));
  await show(v2.send("GET", "/v2/stats/leader"));
  await show(v2.send("GET", "/v2/stats/store"));
  await show(v2.send("GET", "/v2/machines"));
  await show(v2.send("GET", "/v2/keys//foo/../x"));
  assert.ok(true);
});
