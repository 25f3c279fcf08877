/**
 * A headless Chromium on a real member: the example page, EventSource, fetch and WebSocket, from an
 * origin that --cors allows, from another one, and without --cors. And the example for the shell.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { Browser, type Page, skipWithoutBrowser } from "../support/browser.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { skipWithout } from "../support/executables.ts";

const examples = join(import.meta.dirname, "../../examples/http");

/** Serves the example page under two origins, which differ in the name of this machine. */
async function servePage(t: TestContext): Promise<{ own: string; other: string }> {
  const page = readFileSync(join(examples, "live.html"));
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8").end(page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { own: `http://127.0.0.1:${port}`, other: `http://localhost:${port}` };
}

const pageOf = (origin: string, member: string): string =>
  `${origin}/live.html?${new URLSearchParams({ server: member, prefix: "demo/" })}`;

/** Lines of the table in the example page. */
const ROWS = `[...document.querySelectorAll("tr")].map((row) => row.innerText.split("\\t")[1])`;

/** Writes with the form of the example page. */
const write = (page: Page, key: string, value: string): Promise<string> =>
  page.evaluate(`(async () => {
    const form = document.querySelector("form");
    form.querySelector("output").value = "";
    form.elements.key.value = ${JSON.stringify(key)};
    form.elements.value.value = ${JSON.stringify(value)};
    form.requestSubmit();
    while (form.querySelector("output").value === "") await new Promise(requestAnimationFrame);
    return form.querySelector("output").value;
  })()`);

/** What a page gets of its calls: statuses, events, or that the browser keeps them from it. */
function tryAll(page: Page, server: string): Promise<Record<string, string>> {
  return page.evaluate(`(async () => {
    const server = ${JSON.stringify(server)};
    const ask = (path, options) =>
      fetch(server + path, options).then((response) => String(response.status), () => "refused");
    const events = new EventSource(server + "/watch/demo/?prefix&from=1");
    const socket = new WebSocket(server.replace("http", "ws") + "/v3/watch");
    const body = JSON.stringify({ create_request: { key: btoa("demo/a"), start_revision: 1 } });
    socket.onopen = () => socket.send(body);
    const first = (target) => new Promise((resolve) => {
      target.onmessage = () => resolve("event");
      target.onerror = () => resolve("refused");
    });
    const heard = [first(events), first(socket)];
    const result = {
      events: await heard[0],
      socket: await heard[1],
      get: await ask("/kv/demo/a"),
      put: await ask("/kv/demo/page", { method: "PUT", body: "x" }),
      txn: await ask("/txn", { method: "POST", body: '[{"put":"demo/simple","value":""}]' }),
      blind: await ask("/txn", { method: "POST", mode: "no-cors", body: '[{"put":"demo/blind","value":""}]' }),
    };
    events.close();
    socket.close();
    return result;
  })()`);
}

const keysOf = async (member: string): Promise<string[]> => {
  const text = await (await fetch(`${member}/kv/demo/?prefix&keys`)).text();
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line).key);
};

const put = (member: string, key: string, body: string): Promise<Response> =>
  fetch(`${member}/kv/${key}`, { method: "PUT", body });

/** The example page follows keys, also over the death of the member. */
async function followsKeys(page: Page, cluster: TestCluster): Promise<void> {
  const [member] = cluster.members;
  await page.until(`${ROWS}.join() === "1"`);
  assert.match(await write(page, "demo/b", "2"), /^revision \d+$/);
  await page.until(`${ROWS}.join() === "1,2"`);
  // Another client writes; the page's condition is about what it has shown.
  await page.evaluate(`document.querySelector("form").elements.key.value = "demo/b"`);
  await put(member.clientUrl, "demo/b", "3");
  await page.until(`${ROWS}.join() === "1,3"`);
  await page.evaluate(`window.seen = []`);
  await page.evaluate(`(() => {
    const events = new EventSource(${JSON.stringify(member.clientUrl)} + "/watch/demo/c");
    events.onmessage = ({ data }) => window.seen.push(...JSON.parse(data).map(({ value }) => value));
    return new Promise((resolve) => { events.onopen = () => resolve(true); });
  })()`);
  await put(member.clientUrl, "demo/c", "before");
  await page.until(`window.seen.length === 1`);
  await member.kill();
  member.start();
  await cluster.waitReady();
  await put(member.clientUrl, "demo/c", "while away");
  await put(member.clientUrl, "demo/c", "after");
  await page.until(`window.seen.length >= 3`);
  assert.deepEqual(await page.evaluate("window.seen"), ["before", "while away", "after"]);
  await page.until(`${ROWS}.join() === "1,3,after"`);
}

test("a browser reads, follows and writes keys, as --cors allows it", {
  skip: skipWithoutBrowser,
}, async (t) => {
  const { own, other } = await servePage(t);
  const calls = ["events", "socket", "get", "put", "txn"];
  // A request that asks for no response is sent, and gets none.
  const refused = { ...Object.fromEntries(calls.map((call) => [call, "refused"])), blind: "0" };
  const browser = new Browser();
  t.after(() => browser.close());
  await withCluster({ size: 1, flags: [`--cors=${own}`] }, async (cluster) => {
    const { clientUrl } = cluster.members[0];
    await put(clientUrl, "demo/a", "1");
    const page = await browser.open(pageOf(own, clientUrl));
    await followsKeys(page, cluster);
    const allowed = { events: "event", socket: "event", get: "200", put: "201", txn: "200" };
    assert.deepEqual(await tryAll(page, clientUrl), { ...allowed, blind: "0" });
    const before = await keysOf(clientUrl);
    const foreign = await browser.open(pageOf(other, clientUrl));
    assert.deepEqual(await tryAll(foreign, clientUrl), refused);
    assert.deepEqual(await keysOf(clientUrl), before, "it has changed nothing");
  });
  await withCluster({ size: 1 }, async (cluster) => {
    const { clientUrl } = cluster.members[0];
    await put(clientUrl, "demo/a", "1");
    const page = await browser.open(pageOf(own, clientUrl));
    assert.deepEqual(await tryAll(page, clientUrl), refused);
    assert.deepEqual(await keysOf(clientUrl), ["demo/a"]);
  });
});

test("examples/http/counter.sh: programs at once lose no increment", {
  skip: skipWithout("curl"),
}, async () => {
  await withCluster({ size: 1 }, async (cluster) => {
    const { clientUrl } = cluster.members[0];
    const run = () =>
      promisify(execFile)(join(examples, "counter.sh"), [clientUrl, "visits", "3"], {});
    await Promise.all(Array.from({ length: 4 }, run));
    assert.equal(await (await fetch(`${clientUrl}/kv/visits`)).text(), "12");
  });
});
