/** An object store that others wrote (versitygw), which checks signatures and hashes. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { endsWith } from "./children.ts";
import { until } from "./until.ts";

export const STORE_PROGRAM = "versitygw";
export const STORE_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: "backup",
  AWS_SECRET_ACCESS_KEY: "not a secret",
};

/** The server with the bucket "backups", in a directory; its address stays when it starts again. */
export class ObjectStoreServer {
  readonly #dir: string;
  readonly #address: string;
  #child: ChildProcess | undefined;

  /** @param address HOST:PORT */
  constructor(dir: string, address: string) {
    this.#dir = join(dir, "data");
    this.#address = address;
    mkdirSync(join(this.#dir, "backups"), { recursive: true });
  }

  get endpoint(): string {
    return `http://${this.#address}`;
  }

  /** @param t the test with which it ends; without one, it ends with this process */
  async start(t?: TestContext): Promise<void> {
    const args = ["--port", this.#address, "--quiet", "posix", this.#dir];
    const { AWS_ACCESS_KEY_ID: ROOT_ACCESS_KEY, AWS_SECRET_ACCESS_KEY: ROOT_SECRET_KEY } =
      STORE_CREDENTIALS;
    const env = { ...process.env, ROOT_ACCESS_KEY, ROOT_SECRET_KEY };
    this.#child = endsWith(spawn(STORE_PROGRAM, args, { env, stdio: "ignore" }), t);
    await until("the object store responds", () =>
      fetch(this.endpoint).then(
        () => true,
        () => false,
      ),
    );
  }

  async stop(): Promise<void> {
    const child = this.#child!;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  /** All bytes of all objects below a prefix. */
  contentOf(prefix: string): Buffer {
    const dir = join(this.#dir, "backups", prefix);
    return Buffer.concat(readdirSync(dir).map((name) => readFileSync(join(dir, name))));
  }
}
