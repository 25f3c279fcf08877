/** A thousand objects, good and bad, have kube-apiserver 1.36's stored answers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { accessOf } from "./rest/exchange.ts";
import { DIFFERENCES } from "./validation/differences.ts";
import { answersOf, changed, differencesOf, kubeAnswers } from "./validation/play.ts";

test("Objects are refused for kube-apiserver's reasons", async () => {
  await using api = await startApiServer({ controllers: [] });
  const ours = await answersOf(accessOf(api.kubeconfig));
  const kept = kubeAnswers();
  assert.equal(ours.length, kept.length);
  const different = differencesOf(ours, kept).map(({ ours: one }) => one.case);
  const unknown = different.filter(
    (name) => !DIFFERENCES.some(([begin]) => name.startsWith(begin)),
  );
  assert.deepEqual(unknown, []);
  const gone = DIFFERENCES.filter(([begin]) => !different.some((name) => name.startsWith(begin)));
  assert.deepEqual(gone, []);
});

test("A line changes fields, items and what is not there yet", () => {
  const object = { a: { b: [{ c: 1 }] } };
  const line = "a.b.0.c = 2 ; a.b.9 = {} ; a.d.0 = 3 ; e.f = null ; a.b.0.g =";
  assert.deepEqual(changed(object, line), {
    a: { b: [{ c: 2 }, {}], d: [3] },
    e: { f: null },
  });
  assert.deepEqual(changed(object, "a ="), {});
});
