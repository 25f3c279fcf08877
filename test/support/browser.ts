/**
 * A headless Chromium, driven over its pipe (Chrome DevTools Protocol): JSON messages, each ended
 * by a zero byte, on file descriptors 3 (to the browser) and 4 (from it).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { endsWithUs } from "./children.ts";
import { findProgram } from "./executables.ts";

const program = ["chromium", "chromium-browser", "google-chrome"]
  .map(findProgram)
  .find((path) => path !== undefined);

/** For a test's `skip` option: false if a Chromium is installed, else why the test cannot run. */
export const skipWithoutBrowser: string | false =
  program === undefined
    ? "no Chromium is installed (Debian: apt-get install --no-install-recommends chromium)"
    : false;

const FLAGS = [
  "--headless=new",
  "--remote-debugging-pipe",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--no-first-run",
  "--no-proxy-server",
];
/** Windows of a desktop and a phone, in pixels. */
export const WINDOWS = { desktop: [1280, 800], phone: [390, 780] } as const;
/** A larger picture is not for a page. */
export const MAX_PICTURE_BYTES = 200_000;
/** For machines that have much else to do. */
const CALL_LIMIT_MS = 60_000;

/** A message of the browser that nobody asked for. */
interface Event {
  readonly method: string;
  readonly params: {
    readonly type?: string;
    readonly args?: readonly { value?: unknown; description?: string }[];
    readonly exceptionDetails?: { text: string; exception?: { description?: string } };
    readonly entry?: { level: string; text: string; url?: string };
  };
}

type Settle = (message: { result?: unknown; error?: { message: string } }) => void;

/** One browser process. */
export class Browser {
  readonly #child: ChildProcess;
  readonly #dir: string;
  readonly #waiting = new Map<number, Settle>();
  readonly #pages = new Map<string, Page>();
  #buffered = "";
  #id = 0;

  /** Starts the browser. */
  constructor() {
    this.#dir = mkdtempSync(join(tmpdir(), "quorate-browser-"));
    this.#child = spawn(program!, [...FLAGS, `--user-data-dir=${this.#dir}`, "about:blank"], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    endsWithUs(this.#child);
    const output = this.#child.stdio[4] as Readable;
    output.setEncoding("utf8").on("data", (text: string) => this.#received(text));
    this.#child.on("exit", () => this.#failAll("the browser has ended"));
  }

  /** Opens a page; resolves when it has loaded. */
  async open(url: string): Promise<Page> {
    const { targetId } = await this.send<{ targetId: string }>("Target.createTarget", { url });
    const attached = { targetId, flatten: true };
    const { sessionId } = await this.send<{ sessionId: string }>("Target.attachToTarget", attached);
    const page = new Page(this, sessionId);
    this.#pages.set(sessionId, page);
    await page.until(`location.href !== "about:blank" && document.readyState === "complete"`);
    return page;
  }

  /** Sends a command; resolves with its result. */
  send<T>(method: string, params: object, sessionId?: string): Promise<T> {
    const id = ++this.#id;
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => settle({ error: { message: "no response" } }), CALL_LIMIT_MS);
      const settle: Settle = ({ result, error }) => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        if (error === undefined) resolve(result as T);
        else reject(new Error(`${method}: ${error.message}`));
      };
      this.#waiting.set(id, settle);
      (this.#child.stdio[3] as Writable).write(
        `${JSON.stringify({ id, method, params, sessionId })}\0`,
      );
    });
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill("SIGKILL");
      await ended;
    }
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 5 });
  }

  #received(text: string): void {
    const messages = (this.#buffered + text).split("\0");
    this.#buffered = messages.pop()!;
    for (const message of messages) {
      const parsed = JSON.parse(message);
      this.#waiting.get(parsed.id)?.(parsed);
      if (parsed.method !== undefined) this.#pages.get(parsed.sessionId)?.received(parsed);
    }
  }

  #failAll(why: string): void {
    for (const settle of [...this.#waiting.values()]) settle({ error: { message: why } });
  }
}

/** A page of a browser. */
export class Page {
  readonly #browser: Browser;
  readonly #sessionId: string;
  /** Errors in the page's console since watchErrors. */
  readonly errors: string[] = [];

  constructor(browser: Browser, sessionId: string) {
    this.#browser = browser;
    this.#sessionId = sessionId;
  }

  /** Sends a command that concerns the page; resolves with its result. */
  send<T>(method: string, params: object = {}): Promise<T> {
    return this.#browser.send<T>(method, params, this.#sessionId);
  }

  /** From now on errors, uncaught exceptions and failed requests are in `errors`. */
  async watchErrors(): Promise<void> {
    await this.send("Runtime.enable");
    await this.send("Log.enable");
  }

  /** Notes an event of the browser. */
  received({ method, params }: Event): void {
    const { args, entry, exceptionDetails, type } = params;
    if (method === "Runtime.consoleAPICalled" && type === "error")
      this.errors.push(
        (args ?? []).map(({ value, description }) => value ?? description).join(" "),
      );
    if (method === "Runtime.exceptionThrown")
      this.errors.push(exceptionDetails?.exception?.description ?? exceptionDetails!.text);
    if (method === "Log.entryAdded" && entry?.level === "error")
      this.errors.push(`${entry.text} ${entry.url ?? ""}`);
  }

  /** The value of an expression in the page, awaited; it must be JSON. Rejects with its error. */
  async evaluate<T>(expression: string): Promise<T> {
    const params = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.#browser.send<{
      result: { value: T };
      exceptionDetails?: { text: string; exception?: { description?: string } };
    }>("Runtime.evaluate", params, this.#sessionId);
    if (exceptionDetails === undefined) return result.value;
    throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  }

  /** Gives the page's window a size, in pixels. */
  async resize([width, height]: readonly [number, number]): Promise<void> {
    const size = { width, height, deviceScaleFactor: 1, mobile: width < 600 };
    await this.send("Emulation.setDeviceMetricsOverride", size);
  }

  /** The window's content as PNG. Throws for one that is empty, or too large for a page. */
  async picture(): Promise<Buffer> {
    const { data } = await this.send<{ data: string }>("Page.captureScreenshot");
    const picture = Buffer.from(data, "base64");
    if (picture.length > 10_000 && picture.length < MAX_PICTURE_BYTES) return picture;
    throw new Error(`the picture has ${picture.length} bytes`);
  }

  /** Resolves when an expression is true; looks at it again and again, for a minute at most. */
  async until(expression: string): Promise<void> {
    for (let end = performance.now() + CALL_LIMIT_MS; performance.now() < end; ) {
      // The page may be exchanged meanwhile.
      if (await this.evaluate<boolean>(expression).catch(() => false)) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`this did not become true in the page: ${expression}`);
  }
}
