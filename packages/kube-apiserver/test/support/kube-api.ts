/** A real kube-apiserver on a member, where one is installed. */
import { spawn } from "node:child_process";
import { createWriteStream, readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { KubeObject } from "@quorate/kube-storage";
import { endsWithUs } from "../../../../test/support/children.ts";
import { findProgram } from "../../../../test/support/executables.ts";
import { freePorts } from "../../../../test/support/ports.ts";
import { kubeApiFlags } from "./kube-flags.ts";

const program = findProgram("kube-apiserver");

/** For a test's `skip` option. */
export const skipWithoutKubeApi: string | false =
  program === undefined ? "kube-apiserver is not on PATH" : false;

/** The API server does more at its start than the machine of a test run may like. */
const START_LIMIT_MS = 180_000;

/** The REST API of a running kube-apiserver. */
export class KubeApi {
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ code: number; body: KubeObject }> {
    const { code, text } = await this.#send(method, path, body);
    // Paths that are not served yet have a plain text.
    const read: unknown = text.startsWith("{") ? JSON.parse(text) : { text };
    return { code, body: read as KubeObject };
  }

  async isReady(): Promise<boolean> {
    try {
      return (await this.#send("GET", "/readyz")).code === 200;
    } catch {
      // It does not listen yet.
      return false;
    }
  }

  #send(method: string, path: string, body?: unknown): Promise<{ code: number; text: string }> {
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port: this.#port,
          path,
          method,
          rejectUnauthorized: false,
          headers: { authorization: "Bearer admin-token", "content-type": "application/json" },
        },
        (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.on("error", reject);
          response.on("end", () =>
            resolve({ code: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }),
          );
        },
      );
      sent.on("error", reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}

/**
 * Runs kube-apiserver on the member while `body` runs.
 * @param dir has tokens.csv, sa.key and encryption.yaml
 */
export async function withKubeApi(
  endpoint: string,
  dir: string,
  body: (api: KubeApi) => Promise<void>,
): Promise<void> {
  const [port] = await freePorts(1);
  const log = join(dir, "kube-apiserver.log");
  const child = spawn(
    program!,
    [
      ...kubeApiFlags(dir, endpoint, port),
      "--advertise-address=127.0.0.1",
      `--encryption-provider-config=${join(dir, "encryption.yaml")}`,
      "--disable-admission-plugins=ServiceAccount",
    ],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  endsWithUs(child);
  const output = createWriteStream(log);
  child.stdout.pipe(output, { end: false });
  child.stderr.pipe(output, { end: false });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const api = new KubeApi(port);
  try {
    const endMs = performance.now() + START_LIMIT_MS;
    while (!(await api.isReady())) {
      if (child.exitCode !== null || performance.now() > endMs)
        throw new Error(`kube-apiserver is not ready\n${readFileSync(log, "utf8").slice(-3000)}`);
      await delay(200);
    }
    await body(api);
  } finally {
    child.kill("SIGKILL");
    await gone;
    output.end();
  }
}
