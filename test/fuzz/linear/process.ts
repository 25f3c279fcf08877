/** Processes of the attack's servers, and the calls that set them up. */
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Agent, request } from "undici";
import { endsWithUs } from "../../support/children.ts";

const PROGRAM = join(import.meta.dirname, "../../../bin/quorate.js");
const START_LIMIT_MS = 180_000;

export interface Process {
  readonly pid: number;
  readonly isGone: () => boolean;
  /** Resolves when it is gone. */
  kill(): Promise<void>;
}

/** Starts `quorate`. */
export function startProcess(args: readonly string[], logFile: string): Process {
  const log = openSync(logFile, "a");
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ["ignore", log, log] });
  closeSync(log);
  endsWithUs(child);
  const isGone = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    pid: child.pid!,
    isGone,
    async kill() {
      if (isGone()) return;
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await gone;
    },
  };
}

/** Calls of JSON over HTTP, to servers that start. */
export class Caller {
  readonly #agent: Agent;
  readonly #hasEnded: () => boolean;
  readonly #endMs = performance.now() + START_LIMIT_MS;

  /** @param hasEnded whether a server has ended, so that waiting is in vain */
  constructor(agent: Agent, hasEnded: () => boolean) {
    this.#agent = agent;
    this.#hasEnded = hasEnded;
  }

  /** A POST of the body, or a GET without one. */
  async call(
    url: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; text: string }> {
    const response = await request(url, {
      dispatcher: this.#agent,
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/json", ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    return { status: response.statusCode, text: await response.body.text() };
  }

  /** Resolves when a GET responds 200; rejects 180 s after the start, or if a server has ended. */
  async ready(url: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    for (;;) {
      const response = await this.call(url, undefined, headers).catch(() => undefined);
      if (response?.status === 200) return;
      if (performance.now() > this.#endMs || this.#hasEnded())
        throw new Error(`${url} is not ready: ${response?.text}`);
      await delay(100);
    }
  }
}
