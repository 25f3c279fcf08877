/**
 * The console in a headless Chromium, over three members with users: each view at two widths, with
 * many keys, hostile names, and a member down; and over TLS, behind front-end threads. An error in
 * the page's console, such as a violation of its policy, fails the test. QUORATE_CONSOLE_KEYS sets
 * the count of keys, QUORATE_WRITE_DOCS=1 writes the pictures of docs/operate/console.md.
 * @slow
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fromUtf8, toBase64 } from "@quorate/proto";
import { ROOT } from "../../../scripts/dev/commands.ts";
import {
  AuthClient,
  addressOf,
  CHEAP_LOGINS,
  enableAuth,
  PASSWORD,
} from "../../../test/support/auth.ts";
import { Browser, type Page, skipWithoutBrowser, WINDOWS } from "../../../test/support/browser.ts";
import { makeCertificate } from "../../../test/support/certs.ts";
import { type OwnTls, type TestCluster, withCluster } from "../../../test/support/cluster.ts";
import { scratchDirectory } from "../../../test/support/scratch.ts";

const KEYS = Number(process.env["QUORATE_CONSOLE_KEYS"] ?? 20_000);
const WRITES_DOCS = process.env["QUORATE_WRITE_DOCS"] === "1";
const TXN_OPS = 125;

const HOSTILE: readonly string[] = [
  "<script>window.hacked=1</script>",
  '<img src=x onerror="window.hacked=1">',
  '"><svg onload=window.hacked=1>',
  "javascript:window.hacked=1",
  "right\u202eto\u2066left",
  "zero\0byte",
  "\x1b[31mescape\u200b",
  "line\nbreak",
  "x".repeat(20_000),
  "__proto__",
  "%2e%2e",
];

const base64 = (text: string): string => toBase64(fromUtf8(text));

async function post(
  url: string,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<Record<string, unknown>> {
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
}

const put = (url: string, key: string, value: string, more: object = {}) =>
  post(url, "/v3/kv/put", { key: base64(key), value: base64(value), ...more });

/** Keys, a lease, a lock and an election. */
async function fillStore(url: string): Promise<void> {
  for (let from = 0; from < KEYS; from += TXN_OPS) {
    const success = Array.from({ length: Math.min(TXN_OPS, KEYS - from) }, (_, i) => {
      const number = String(from + i).padStart(7, "0");
      const key = base64(`/many/${number.slice(0, 5)}/${number}`);
      return { request_put: { key, value: base64(`value ${number}`) } };
    });
    await post(url, "/v3/kv/txn", { success });
  }
  for (const name of HOSTILE) await put(url, `hostile/${name}`, `the value of ${name}`);
  await put(url, "ann/notes", "mine");
  await put(url, "config/app.json", '{"replicas":2,"id":12345678901234567890}');
  await put(url, "config/app.json", '{"replicas":3,"id":12345678901234567890}');
  const { ID } = await post(url, "/v3/lease/grant", { TTL: 600 });
  const id = BigInt(ID as string).toString(16);
  await put(url, `locks/nightly/${id}`, "", { lease: ID });
  await put(url, `elections/boss/${id}`, "node-1", { lease: ID });
}

/** Logs in through the form. */
async function login(page: Page, user: string, password: string): Promise<void> {
  await page.until(`document.querySelector("form.login") !== null`);
  await page.evaluate(`(() => {
    const form = document.querySelector("form.login");
    form.elements.user.value = ${JSON.stringify(user)};
    form.elements.password.value = ${JSON.stringify(password)};
    form.requestSubmit();
  })()`);
}

/** Goes to a view; resolves when it shows what it must. */
async function go(page: Page, view: string, shows: string): Promise<void> {
  await page.evaluate(`(location.hash = ${JSON.stringify(`#/${view}`)}, 0)`);
  const name = view.split("?")[0];
  await page.until(
    `document.querySelector("[data-view=${name}]")?.innerText.includes(${JSON.stringify(shows)})`,
  );
}

const alertText = `document.getElementById("alert").innerText`;
const click = (page: Page, expression: string) => page.evaluate(`(${expression}).click()`);
const button = (text: string) =>
  `[...document.querySelectorAll("main button, dialog button")]` +
  `.find((one) => one.innerText.trim().startsWith(${JSON.stringify(text)}))`;
const item = (text: string) =>
  `[...document.querySelectorAll("[role=treeitem] > button")]` +
  `.find((one) => one.querySelector(".key")?.innerText === ${JSON.stringify(text)})`;

/** Types into the field with that label. */
const type = (page: Page, label: string, text: string) =>
  page.evaluate(`(() => {
    const label = [...document.querySelectorAll("label")]
      .find((one) => one.innerText.trim() === ${JSON.stringify(label)});
    label.querySelector("input, select, textarea").value = ${JSON.stringify(text)};
  })()`);

/** Browsers note each response that is an error; the page's own errors are others. */
function takeRefusals(page: Page, statuses: readonly number[]): void {
  const own = page.errors.filter(
    (one) => !statuses.some((status) => one.includes(`responded with a status of ${status}`)),
  );
  page.errors.length = 0;
  assert.deepEqual(own, []);
}

/** The views, and what each shows in the end. */
const VIEWS: Readonly<Record<string, string>> = {
  members: "leader",
  rates: "Latency of writes",
  keys: "hostile/",
  watch: "From revision",
  leases: "1 leases",
  locks: "nightly",
  users: "Roles (",
  top: "/many/",
  log: "ready to serve client requests",
};

test("the console in a browser", { skip: skipWithoutBrowser }, async (t) => {
  const browser = new Browser();
  t.after(() => browser.close());
  const flags = ["--console", ...CHEAP_LOGINS];
  await withCluster({ size: 3, flags }, (cluster) => seen(t, browser, cluster));
});

test("the console over TLS, behind front-end threads", {
  skip: skipWithoutBrowser,
}, async (t) => {
  const browser = new Browser();
  t.after(() => browser.close());
  const dir = scratchDirectory("quorate-console-", t);
  const certificate = makeCertificate({ name: "member", ipAddresses: ["127.0.0.1"] });
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  writeFileSync(cert, certificate.certPem);
  writeFileSync(key, certificate.keyPem);
  const tls: OwnTls = {
    identity: { ca: certificate.certPem },
    flagsOf: () => [
      `--cert-file=${cert}`,
      `--key-file=${key}`,
      `--peer-cert-file=${cert}`,
      `--peer-key-file=${key}`,
    ],
  };
  const flags = ["--console", "--frontend-threads=2"];
  await withCluster({ size: 1, tls, flags }, async ({ members: [member] }) => {
    const page = await browser.open("about:blank?");
    await page.send("Security.setIgnoreCertificateErrors", { ignore: true });
    await page.send("Page.navigate", { url: `${member.clientUrl}/console/` });
    await page.watchErrors();
    await page.until(`document.querySelectorAll("[data-view=members] tbody tr").length === 1`);
    assert.equal(
      await page.evaluate(`performance.getEntriesByType("navigation")[0].nextHopProtocol`),
      "h2",
    );
    await go(page, "watch?prefix=live/", "From revision");
    await click(page, button("Watch"));
    await page.until(`document.querySelector("[role=status]").innerText.startsWith("watching")`);
    const body = { key: base64("live/one"), value: base64("hello") };
    await page.evaluate(
      `fetch("/v3/kv/put", { method: "POST", body: ${JSON.stringify(JSON.stringify(body))} }).then(() => 0)`,
    );
    await page.until(
      `document.querySelector("[data-view=watch] tbody")?.innerText.includes("live/one")`,
    );
    await go(page, "keys", "live/");
    await click(page, item("live/"));
    await page.until(`${item("one")} !== undefined`);
    await click(page, item("one"));
    await page.until(`document.querySelector("pre")?.innerText === "hello"`);
    for (const [view, shows] of [
      ["rates", "Latency of writes"],
      ["top", "live/"],
      ["log", "ready to serve client requests"],
    ] as const)
      await go(page, view, shows);
    assert.deepEqual(page.errors, []);
  });
});

async function seen(t: TestContext, browser: Browser, cluster: TestCluster): Promise<void> {
  // Steps build on those before: after one that failed the others would only wait.
  let hasFailed = false;
  const step = (name: string, body: () => Promise<void>) =>
    t.test(name, { skip: hasFailed }, () =>
      body().catch((error) => {
        hasFailed = true;
        throw error;
      }),
    );
  const [member, , last] = cluster.members;
  const url = member.clientUrl;
  await fillStore(url);
  const client = new AuthClient(addressOf(url));
  await enableAuth(client, { ann: [["ann/", "ann0", "readwrite"]] });
  await client.login("root");
  const asRoot = { authorization: client.token! };
  const putAsRoot = async (key: string, value: string) => {
    const body = JSON.stringify({ key: base64(key), value: base64(value) });
    const response = await fetch(`${url}/v3/kv/put`, { method: "POST", headers: asRoot, body });
    assert.equal(response.status, 200);
  };
  client.close();

  const page = await browser.open(`${url}/console/`);
  await page.watchErrors();
  await page.resize(WINDOWS.desktop);

  await step("nobody sees anything without a password", async () => {
    await login(page, "ann", "wrong");
    await page.until(`${alertText}.includes("authentication failed")`);
    takeRefusals(page, [400, 401]);
    const refused = await page.evaluate<number[]>(`Promise.all(
      ["overview", "rates", "children", "top", "log", "decode"].map((name) =>
        fetch("/console/api/" + name, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: "{}",
        }).then(({ status }) => status)))`);
    assert.deepEqual([...new Set(refused)], [400]);
    takeRefusals(page, [400]);
  });

  await step("a user sees and changes what its roles permit", async () => {
    await login(page, "ann", PASSWORD);
    await page.until(`document.querySelectorAll("[data-view=members] tbody tr").length === 3`);
    await go(page, "keys", "notes");
    await click(page, item("notes"));
    await page.until(`document.querySelector("pre")?.innerText === "mine"`);
    await click(page, button("Edit"));
    await page.until(`document.querySelector("dialog textarea")?.value === "mine"`);
    await page.evaluate(`(document.querySelector("dialog textarea").value = "ours", 0)`);
    await click(page, button("Write"));
    await page.until(`document.querySelector("pre")?.innerText === "ours"`);
    assert.deepEqual(page.errors, []);
    for (const view of ["log", "top"]) {
      await page.evaluate(`(location.hash = "#/${view}", 0)`);
      await page.until(`${alertText}.includes("permission denied")`);
      takeRefusals(page, [403]);
    }
    await click(page, `document.querySelector("#who button")`);
    await login(page, "root", PASSWORD);
  });

  for (const [name, size] of Object.entries(WINDOWS))
    await step(`every view fits a ${name}`, async () => {
      await page.resize(size);
      for (const [view, shows] of Object.entries(VIEWS)) {
        await go(page, view, shows);
        const overflow = await page.evaluate<number>(
          `document.documentElement.scrollWidth - innerWidth`,
        );
        assert.ok(overflow <= 0, `${view} is ${overflow} pixels wider than the window`);
        assert.deepEqual({ view, errors: page.errors }, { view, errors: [] });
      }
      await page.resize(WINDOWS.desktop);
    });

  await step("hostile names are text, and what cannot be seen is shown", async () => {
    await go(page, "keys", "hostile/");
    await click(page, item("hostile/"));
    await page.until(`${item("__proto__")} !== undefined`);
    const names = await page.evaluate<string[]>(
      `[...document.querySelectorAll("[role=group] .key")].map((one) => one.innerText)`,
    );
    for (const shown of [
      HOSTILE[1]!,
      "right\\u{202e}to\\u{2066}left",
      "zero\\u{0}byte",
      "\\u{1b}[31mescape\\u{200b}",
      "line\\u{a}break",
      "%2e%2e",
    ])
      assert.ok(names.includes(shown), shown);
    assert.ok(names.every((name) => name.length < 1000));
    await click(page, item(HOSTILE[1]!));
    await page.until(`document.querySelector("pre")?.innerText.includes("onerror")`);
    assert.equal(await page.evaluate("typeof window.hacked"), "undefined");
    assert.deepEqual(page.errors, []);
  });

  await step("many keys are a tree that is read in parts", async () => {
    await go(page, "keys", "hostile/");
    await click(page, item("/many/"));
    await page.until(`document.querySelectorAll("[role=group] > li").length >= 100`);
    await page.until(
      `document.querySelector("[role=tree]").innerText.includes("${KEYS.toLocaleString("en")}")`,
    );
    await click(page, button("more"));
    await page.until(`document.querySelectorAll("[role=group] > li").length >= 200`);
    await go(page, "top", KEYS.toLocaleString("en"));
    assert.deepEqual(page.errors, []);
  });

  await step("a key has views, a history, and differences", async () => {
    await go(page, `keys?key=${encodeURIComponent(btoa("config/app.json"))}`, "config/app.json");
    await page.until(`document.querySelector("pre")?.innerText.includes('"replicas": 3')`);
    assert.ok(
      await page.evaluate(
        `document.querySelector("pre").innerText.includes("12345678901234567890")`,
      ),
    );
    await click(page, button("Hex"));
    await page.until(`document.querySelector("pre").innerText.startsWith("000000  7b 22")`);
    await click(page, button("History"));
    await page.until(
      `document.querySelector(".history pre").innerText.includes('+   "replicas": 3')`,
    );
    assert.ok(
      await page.evaluate(
        `document.querySelector(".history pre").innerText.includes('-   "replicas": 2')`,
      ),
    );
    assert.deepEqual(page.errors, []);
  });

  await step("a prefix has a difference between two revisions", async () => {
    await putAsRoot("config/new.json", "{}");
    await go(page, "keys?prefix=config/&since=2", "app.json");
    await page.until(`document.querySelector("[role=tree]").innerText.includes("2 added")`);
    const { header } = await post(url, "/v3/maintenance/status", {}, asRoot);
    const { revision } = header as { revision: string };
    await putAsRoot("config/app.json", '{"replicas":4}');
    await type(page, "Difference from revision", revision);
    await click(page, button("Show"));
    await page.until(
      `document.querySelector("[role=tree]").innerText.includes("0 added, 1 changed, 0 removed")`,
    );
    await click(page, item("app.json"));
    await page.until(`document.querySelector("pre")?.innerText.includes('+   "replicas": 4')`);
    assert.deepEqual(page.errors, []);
  });

  await step("events are shown as they come", async () => {
    await go(page, "watch?prefix=live/", "From revision");
    await click(page, button("Watch"));
    await page.until(`document.querySelector("[role=status]").innerText.startsWith("watching")`);
    await putAsRoot("live/one", "hello");
    await page.until(
      `document.querySelector("[data-view=watch] tbody")?.innerText.includes("live/one")`,
    );
    await click(page, button("Stop"));
    await page.until(`document.querySelector("[role=status]").innerText.startsWith("stopped")`);
    assert.deepEqual(page.errors, []);
  });

  await step("leases, locks and permissions", async () => {
    await go(page, "leases", "locks/nightly/");
    await go(page, "locks", "node-1");
    await go(page, "users", "May user");
    const ask = async (user: string, key: string, answer: string) => {
      await type(page, "May user", user);
      await type(page, "with key", key);
      await click(page, button("Ask"));
      await page.until(`document.querySelector("output").innerText === ${JSON.stringify(answer)}`);
    };
    await ask("ann", "ann/notes", "yes, by ann");
    await ask("ann", "bob/notes", "no");
    assert.deepEqual(page.errors, []);
  });

  await step("keys of the keyboard", async () => {
    const press = (key: string) =>
      page.evaluate(
        `document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "${key}", bubbles: true })) || 0`,
      );
    await press("3");
    await page.until(`location.hash === "#/keys" && ${item("ann/")} !== undefined`);
    await page.evaluate(`(() => {
      document.querySelector("[role=tree] button").focus();
      document.activeElement.dispatchEvent(
        new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
    })()`);
    assert.equal(
      await page.evaluate(
        `[...document.querySelectorAll("[role=tree] button")].indexOf(document.activeElement)`,
      ),
      1,
    );
    await press("?");
    await page.until(`document.querySelector("dialog").open`);
    await click(page, button("Close"));
    const theme = () => page.evaluate<string>(`getComputedStyle(document.body).backgroundColor`);
    const before = await theme();
    await press("t");
    assert.notEqual(await theme(), before);
    await press("t");
    assert.equal(await theme(), before);
  });

  await step("a key is made and deleted, and a lease revoked", async () => {
    const inDialog = `document.querySelector("dialog[open] form")`;
    await go(page, "keys?prefix=made/", "New key");
    await click(page, button("New key"));
    await page.until(`${inDialog} !== null`);
    await page.evaluate(`(() => {
      ${inDialog}.elements.key.value = "made/here";
      ${inDialog}.elements.value.value = "by hand";
      ${inDialog}.requestSubmit();
    })()`);
    await page.until(`${item("here")} !== undefined`);
    await click(page, item("here"));
    await page.until(`document.querySelector("pre")?.innerText === "by hand"`);
    await click(page, button("Delete"));
    await page.until(`${inDialog} !== null`);
    await page.evaluate(`${inDialog}.requestSubmit()`);
    await page.until(`document.querySelector("main").innerText.includes("does not exist")`);
    await go(page, "leases", "locks/nightly/");
    await click(page, button("Revoke"));
    await page.until(`${inDialog} !== null`);
    await page.evaluate(`${inDialog}.requestSubmit()`);
    await page.until(
      `document.querySelector("[data-view=leases]")?.innerText.includes("0 leases")`,
    );
    assert.deepEqual(page.errors, []);
  });

  await step("the log is filtered", async () => {
    await go(page, "log", "ready to serve client requests");
    const rows = () => page.evaluate<number>(`document.querySelectorAll(".log tr").length`);
    const all = await rows();
    await page.evaluate(`(() => {
      const input = document.querySelector("[data-view=log] input");
      input.value = "ready to serve";
      input.dispatchEvent(new Event("input"));
    })()`);
    const some = await rows();
    assert.ok(some > 0 && some < all, `${some} of ${all}`);
  });

  if (WRITES_DOCS) await writePictures(page, putAsRoot);

  await step("a member that is down is shown as silent, with what to do", async () => {
    await last!.kill();
    await go(page, "members", "does not report");
    const text = await page.evaluate<string>(
      `document.querySelector("[data-view=members]").innerText`,
    );
    assert.match(text, /silent/);
    assert.match(text, /2 members must run for writes/);
    assert.deepEqual(page.errors, []);
    if (WRITES_DOCS) await write(page, "members");
  });
}

/** Writes a view's pictures at both widths. */
async function write(page: Page, name: string): Promise<void> {
  for (const [width, size] of Object.entries(WINDOWS)) {
    await page.resize(size);
    writeFileSync(join(ROOT, `docs/pictures/console-${name}-${width}.png`), await page.picture());
  }
  await page.resize(WINDOWS.desktop);
}

/** The pictures of the page about the console: rates after a while of writes, and a key. */
async function writePictures(
  page: Page,
  putAsRoot: (key: string, value: string) => Promise<void>,
): Promise<void> {
  const SECONDS = 80;
  for (let i = 0, end = Date.now() + SECONDS * 1000; Date.now() < end; i++) {
    await putAsRoot(`live/${i % 50}`, `value ${i}`);
    await new Promise((resolve) => setTimeout(resolve, 10 + 40 * Math.sin(i / 300) ** 2));
  }
  await go(page, "rates", VIEWS["rates"]!);
  await write(page, "rates");
  await go(page, `keys?key=${encodeURIComponent(btoa("config/app.json"))}`, "config/app.json");
  await click(page, button("History"));
  await page.until(`document.querySelector(".history pre").innerText.includes("replicas")`);
  await write(page, "keys");
}
