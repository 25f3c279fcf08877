/**
 * Starts an API server in this process, for tests and programs:
 *
 *     await using api = await startApiServer();
 *     run("kubectl", "--kubeconfig", api.kubeconfigPath, "get", "namespaces");
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { enableCompileCache, getCompileCacheDir } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@quorate/client";
import { type Logger, silentLogger } from "@quorate/host";
import type { ControlPlane } from "../src/server/control-plane.ts";
import { JsonClient, type JsonRequest, type JsonResponse } from "./json-client.ts";
import { DEFAULT_SERVE_OPTIONS, type ServeOptions } from "./serve-options.ts";

export interface StartOptions extends Partial<ServeOptions> {
  readonly logger?: Logger;
}

/** Reading the server's code again takes longer than its start, so it is kept beside the code. */
function keepCompiledCode(): void {
  const modules = join(import.meta.dirname, "../../../node_modules");
  if (getCompileCacheDir() === undefined && existsSync(modules))
    enableCompileCache(join(modules, ".cache/quorate"));
}

/** A server that runs. */
export interface RunningApiServer extends AsyncDisposable {
  /** Such as "https://127.0.0.1:41234". */
  readonly url: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string;
  /** A kubeconfig of the group system:masters, as text and as a file. */
  readonly kubeconfig: string;
  readonly kubeconfigPath: string;
  /** Sends a request as the admin, with JSON in and out. */
  request(path: string, request?: JsonRequest): Promise<JsonResponse>;
  /** A kubeconfig of another user, by a client certificate. */
  kubeconfigFor(user: string, groups: readonly string[]): Promise<string>;
  /** The parts of the server, for programs that add resources. */
  readonly plane: ControlPlane;
  /** A client of the cluster that holds the objects. */
  readonly store: Client;
  stop(): Promise<void>;
}

/**
 * Starts a server; resolves when it is ready. By default it listens on a free port of 127.0.0.1,
 * and keeps its objects with a single member in a temporary directory, which `stop` removes.
 * Rejects with Error where an address is taken or a file cannot be read.
 */
export async function startApiServer(options: StartOptions = {}): Promise<RunningApiServer> {
  const { logger = silentLogger, ...given } = options;
  keepCompiledCode();
  const { serveApi } = await import("./serve.ts");
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "quorate-api-"));
  const remove = (): void => {
    if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
  };
  const onEnd = (error: unknown): void =>
    logger.error("the embedded member has ended", { error: String(error) });
  try {
    const serving = await serveApi(
      { ...DEFAULT_SERVE_OPTIONS, ...given, dataDir },
      { logger, onEnd },
    );
    const client = new JsonClient(serving.url, serving.caPem, serving.admin);
    const stop = async (): Promise<void> => {
      await client.close();
      await serving.stop();
      remove();
    };
    const { url, caPem: ca, kubeconfig, kubeconfigPath, kubeconfigFor, plane, store } = serving;
    return {
      url,
      ca,
      kubeconfig,
      kubeconfigPath,
      kubeconfigFor,
      plane,
      store,
      stop,
      request: (path, request) => client.request(path, request),
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** The program `quorate apiserver`. Who embeds a server needs none of it, and does not load it. */
export const loadApiServerProgram = async () => (await import("./program.ts")).apiServerProgram;
