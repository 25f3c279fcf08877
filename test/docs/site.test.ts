/**
 * The documentation site in a headless Chromium: every page loads without an error, every link
 * leads to a page and a title, search finds a page, and a phone shows it. QUORATE_WRITE_DOCS=1
 * writes the screenshots of docs/internals/site.md.
 * @slow
 */
import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "../../scripts/dev/commands.ts";
import { buildSite } from "../../scripts/site/build.ts";
import { sidebar, sitePages } from "../../scripts/site/pages.ts";
import { serveSite } from "../../scripts/site/serve.ts";
import {
  Browser,
  MAX_PICTURE_BYTES,
  type Page,
  skipWithoutBrowser,
  WINDOWS,
} from "../support/browser.ts";
import { scratchDirectory } from "../support/scratch.ts";

/** What a page shows. */
interface Shown {
  readonly title: string;
  readonly links: readonly string[];
  readonly ids: readonly string[];
  /** Pictures that did not load. */
  readonly broken: readonly string[];
  /** Pixels that the page is wider than the window. */
  readonly overflow: number;
}

const SHOWN = `({
  title: document.querySelector("h1")?.innerText ?? "",
  links: [...document.querySelectorAll("a[href]")].map((one) => one.href),
  ids: [...document.querySelectorAll("[id]")].map((one) => one.id),
  broken: [...document.images].filter((one) => one.naturalWidth === 0).map((one) => one.src),
  overflow: document.documentElement.scrollWidth - innerWidth,
})`;

/** Goes to a page; resolves when its program runs. */
async function go(page: Page, url: string): Promise<Shown> {
  await page.send("Page.navigate", { url });
  await page.until(
    `location.href === ${JSON.stringify(url)} && document.readyState === "complete" &&
      document.querySelector("#app")?.__vue_app__ !== undefined`,
  );
  return page.evaluate<Shown>(SHOWN);
}

test("the shelf is the sidebar", () => {
  const texts = sidebar(ROOT).map(({ text }) => text);
  const shelves = ["Guide", "Operate", "Reference", "Internals", "Evidence"];
  assert.deepEqual(
    texts.filter((text) => shelves.includes(text)),
    shelves,
  );
});

test("the site in a browser", { skip: skipWithoutBrowser }, async (t) => {
  const directory = scratchDirectory("quorate-site-", t);
  await buildSite(directory);
  const { server, url } = await serveSite(directory, 0);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const browser = new Browser();
  t.after(() => browser.close());
  const page = await browser.open(`${url}/`);
  await page.watchErrors();
  await page.resize(WINDOWS.desktop);

  const paths = [...sitePages(ROOT).values()]
    .filter((path) => path.endsWith(".md"))
    .map((path) => `/${path === "index.md" ? "" : path.replace(/\.md$/, ".html")}`);
  const shown = new Map<string, Shown>();

  await t.test("every page loads, without an error", async () => {
    assert.ok(paths.length > 50);
    for (const path of paths) {
      const one = await go(page, url + path);
      shown.set(path, one);
      assert.notEqual(one.title, "", path);
      assert.deepEqual(
        { path, broken: one.broken, errors: page.errors },
        { path, broken: [], errors: [] },
      );
    }
  });

  await t.test("every link leads to a page, and to a title on it", async () => {
    const links = new Set(
      [...shown].flatMap(([path, one]) => one.links.map((to) => `${path} ${to}`)),
    );
    const dead: string[] = [];
    for (const link of links) {
      const to = new URL(link.split(" ")[1]!);
      if (to.origin !== url) continue;
      const target = shown.get(to.pathname);
      const isThere =
        target === undefined
          ? (await fetch(to)).ok
          : to.hash === "" || target.ids.includes(decodeURIComponent(to.hash.slice(1)));
      if (!isThere) dead.push(link);
    }
    assert.ok(links.size > 1_000);
    assert.deepEqual(dead, []);
  });

  await t.test("an error in the console of a page, and a missing picture, are seen", async () => {
    await page.evaluate(`console.error("planted"), new Image().src = "/pictures/none.svg", 0`);
    for (let end = Date.now() + 60_000; page.errors.length < 2 && Date.now() < end; )
      await new Promise((resolve) => setTimeout(resolve, 20));
    assert.match(page.errors.sort().join("\n"), /none\.svg\nplanted/);
    page.errors.length = 0;
  });

  await t.test("search finds a page", async () => {
    await go(page, `${url}/`);
    await page.evaluate(`document.querySelector(".DocSearch-Button").click(), 0`);
    await page.until(`document.querySelector(".VPLocalSearchBox input") !== null`);
    await page.evaluate(`(() => {
      const input = document.querySelector(".VPLocalSearchBox input");
      input.value = "fencing";
      input.dispatchEvent(new Event("input", { bubbles: true }));
    })()`);
    const result = `[...document.querySelectorAll(".VPLocalSearchBox a.result")]
      .find((one) => one.pathname === "/guide/fencing.html")`;
    await page.until(`${result} !== undefined`);
    await page.evaluate(`${result}.click(), 0`);
    await page.until(`location.pathname === "/guide/fencing.html"`);
    assert.deepEqual(page.errors, []);
  });

  for (const [name, size] of Object.entries(WINDOWS))
    await t.test(`a ${name} shows a page within its width`, async () => {
      await page.resize(size);
      for (const path of ["/", "/internals/benchmarks.html", "/reference/limits.html"])
        assert.ok((await go(page, url + path)).overflow <= 0, path);
      await go(page, `${url}/internals/benchmarks.html`);
      const image = await page.picture();
      if (process.env["QUORATE_WRITE_DOCS"] === "1")
        writeFileSync(join(ROOT, `docs/pictures/site-${name}.png`), image);
    });

  await t.test("the screenshots of the page about the site are there", () => {
    for (const name of Object.keys(WINDOWS))
      assert.ok(statSync(join(ROOT, `docs/pictures/site-${name}.png`)).size < MAX_PICTURE_BYTES);
  });
});
