import { createFieldManager } from "../../index.ts";
import { applyPatch } from "../../src/apply/apply-patch.ts";
import { THINGS, STRATEGIC } from "./support/thing.ts";
const t = THINGS[0].v1;
const fm = createFieldManager({ kind: t.kind, schema: t });
const now = Date.now();
const obj = (n: number, img: string) => ({ apiVersion: "example.org/v1", kind: "Thing", metadata: { name: "x", labels: { a: "1", b: "2" }, uid: "u" }, spec: { replicas: 1, containers: Array.from({ length: n }, (_, i) => ({ name: "c" + i, image: img, ports: [{ port: 80 + i }], args: ["a", "b"] })) } });
for (const n of [3, 30, 10000]) {
  let a: any = await fm.apply(undefined, { ...obj(n, "1"), metadata: { name: "x" } } as any, "me", "", true, now);
  a = { ...a, metadata: { ...a.metadata, uid: "u" } };
  const runs = n > 1000 ? 3 : 2000;
  for (const [what, f] of Object.entries({
    updateOne: () => fm.update(a, { ...a, spec: { ...a.spec, replicas: 2 } }, "m", "", now),
    updateFresh: () => fm.update(a, obj(n, "2") as any, "m", "", now),
    applySame: () => fm.apply(a, { ...obj(n, "1"), metadata: { name: "x" } } as any, "me", "", false, now),
    applyChange: () => fm.apply(a, { ...obj(n, "3"), metadata: { name: "x" } } as any, "me", "", false, now),
  })) { await f(); const s = performance.now(); for (let i = 0; i < runs; i++) await f(); console.log(n, what, ((performance.now() - s) / runs).toFixed(3), "ms"); }
}
const doc: any = { items: Array.from({ length: 10000 }, (_, i) => ({ name: "n" + i, value: "v" })) };
for (const [what, p] of Object.entries({ smp: { items: Array.from({ length: 10000 }, (_, i) => ({ name: "n" + (i * 7 % 10000), value: "w" })), "$setElementOrder/items": Array.from({ length: 10000 }, (_, i) => ({ name: "n" + (i * 7 % 10000) })) } })) { const s = performance.now(); applyPatch("application/strategic-merge-patch+json", doc, p, STRATEGIC); console.log(what, performance.now() - s); }
const ops = Array.from({ length: 10000 }, (_, i) => ({ op: "add", path: "/items/0", value: i }));
let s = performance.now(); applyPatch("application/json-patch+json", doc, ops, undefined); console.log("json", performance.now() - s);
const moves = Array.from({ length: 10000 }, (_, i) => ({ op: "move", from: "/items/0", path: "/items/-" }));
s = performance.now(); applyPatch("application/json-patch+json", doc, moves, undefined); console.log("move", performance.now() - s);
