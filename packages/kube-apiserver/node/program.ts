/** `quorate apiserver`: runs an API server until a signal ends it. */
import { Exit, type Invocation, type Program } from "@quorate/cli";
import { type NodeLogger, nodeClock, nodeLogger, supervisorOf } from "@quorate/host/node";
import { optionsOf } from "./flag-options.ts";
import { API_SERVER_FLAGS, ignoredFlags } from "./flags.ts";
import { type ServingApi, serveApi } from "./serve.ts";
import type { ServeOptions } from "./serve-options.ts";
import { versionDocument } from "./version.ts";

/** The program as far as it is an API server. */
export const apiServerProgram: Program = {
  name: "quorate",
  short: "An API server for Kubernetes' clients. Without a command quorate runs a member.",
  groups: [
    {
      title: "Commands",
      commands: [
        {
          use: "apiserver",
          short: "run an API server",
          long: `Serves the Kubernetes API for kubectl and controllers, without nodes. Objects are in the cluster of
--etcd-servers, or with a member in the same process. The admin's kubeconfig is written to --data-dir.`,
          flags: API_SERVER_FLAGS,
          run: runApiServer,
        },
      ],
    },
  ],
  globals: {},
};

async function runApiServer({ flags, io, args }: Invocation): Promise<void> {
  if (args.length > 0) throw new Exit(1, `apiserver takes no arguments, got ${args.join(" ")}`);
  if (flags.bool("version")) {
    io.stdout(`Kubernetes ${versionDocument()["gitVersion"]}\n`);
    return;
  }
  let options: ServeOptions;
  try {
    options = optionsOf(flags);
  } catch (error) {
    throw new Exit(1, (error as Error).message);
  }
  const level = flags.string("log-level");
  if (level !== "debug" && level !== "info" && level !== "warn" && level !== "error")
    throw new Exit(1, `--log-level is ${JSON.stringify(level)}: debug, info, warn or error`);
  const logger = nodeLogger({ level, outputs: ["stderr"], format: "auto" });
  for (const [flag, reason] of ignoredFlags(flags))
    logger.warn("option has no effect", { option: flag, reason });
  const stopped = Promise.withResolvers<unknown>();
  let serving: ServingApi;
  try {
    serving = await serveApi(options, { logger, onEnd: (error) => stopped.resolve(error) });
  } catch (error) {
    logger.close();
    throw new Exit(1, `cannot start the API server: ${(error as Error).message}`);
  }
  io.stdout(`${serving.url}\nexport KUBECONFIG=${serving.kubeconfigPath}\n`);
  await untilStopped(io, logger, serving, stopped);
}

/** Serves until a signal, or until the embedded member has ended. */
async function untilStopped(
  io: Invocation["io"],
  logger: NodeLogger,
  serving: ServingApi,
  stopped: PromiseWithResolvers<unknown>,
): Promise<void> {
  const supervisor = supervisorOf(process.env, { clock: nodeClock, logger });
  supervisor.ready();
  const forget = io.onStop((signal) => {
    logger.info("received signal; shutting down", { signal });
    stopped.resolve(undefined);
  });
  const error = await stopped.promise;
  forget();
  supervisor.stopping();
  await serving.stop();
  if (error !== undefined)
    logger.error("the embedded member has ended", { error: (error as Error).message });
  logger.close();
  if (error !== undefined) throw new Exit(1, "the embedded member has ended");
}
