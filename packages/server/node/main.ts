/**
 * The program `quorate`: reads its command line, runs one member, and ends it on SIGTERM or SIGINT.
 */

import { type NodeLogger, nodeClock, nodeLogger, supervisorOf } from "@quorate/host/node";
import { QUORATE_VERSION, SERVER_VERSION } from "@quorate/member";
import type { LogConfig } from "../src/config/server-config.ts";
import { startFields } from "../src/config/start-fields.ts";
import { invoke } from "./cli/invoke.ts";
import { nextStep, thisUser } from "./next-step.ts";
import { loggerLevel, reload } from "./reload.ts";
import { type ServingMember, serve } from "./serve.ts";

/** What this process makes is for its own user: files 0600, directories 0700. */
const PRIVATE_UMASK = 0o077;

function outputNames(log: LogConfig): string[] {
  return log.outputs.map((output) => (output.kind === "file" ? output.path : output.kind));
}

/** An error as fields of a log line. */
function describe(error: unknown) {
  return error instanceof Error
    ? { error: error.message, stack: error.stack ?? "" }
    : { error: String(error) };
}

/** The command to run next after an error, as a field of a log line, where there is one. */
function advice(error: unknown): { readonly next?: string } {
  const next = error instanceof Error ? nextStep(error.message, thisUser()) : undefined;
  return next === undefined ? {} : { next };
}

/** Runs the program with this process's arguments. Called once, by bin/launch.js. */
export async function main(): Promise<void> {
  // LevelDB makes its files with no mode of its own.
  process.umask(PRIVATE_UMASK);
  const invoked = await invoke(
    process.argv.slice(2),
    process.env,
    { quorate: QUORATE_VERSION, etcd: SERVER_VERSION },
    { stdout: (text) => process.stdout.write(text), stderr: (text) => process.stderr.write(text) },
  );
  if (invoked.kind === "exit") {
    process.exitCode = invoked.code;
  } else {
    const { config, notices } = invoked;
    let logger: NodeLogger;
    try {
      logger = nodeLogger({
        level: loggerLevel(config.log),
        outputs: outputNames(config.log),
        format: config.log.format,
        rotation: config.log.rotation,
      });
    } catch (error) {
      process.stderr.write(
        `quorate: --log-outputs: cannot open the log: ${(error as Error).message}\n`,
      );
      process.exitCode = 1;
      return;
    }
    const end = (code: number): never => {
      logger.close();
      process.exit(code);
    };
    process.on("uncaughtException", (error) => {
      logger.error("the member cannot go on", describe(error));
      end(1);
    });

    for (const notice of notices) logger[notice.level](notice.msg, notice.fields);
    let serving: ServingMember | undefined;
    let stopping = false;
    let isReady = false;
    const supervisor = supervisorOf(process.env, { clock: nodeClock, logger });
    const stop = (signal: string) => {
      logger.info("received signal; shutting down", { signal });
      if (stopping || serving === undefined) return end(stopping ? 1 : 0);
      stopping = true;
      supervisor.stopping();
      serving.stop().then(
        () => end(0),
        (error) => {
          logger.error("the member did not stop in order", describe(error));
          end(1);
        },
      );
    };
    for (const signal of ["SIGTERM", "SIGINT"] as const)
      process.on(signal, () => stop(signal === "SIGTERM" ? "terminated" : "interrupt"));

    process.on("SIGHUP", () => {
      // A member that is starting, or ending, must not be taken for one that serves.
      const isServing = () => isReady && !stopping;
      if (isServing()) supervisor.reloading();
      void reload({ argv: process.argv.slice(2), env: process.env, config }, logger, async () => {
        serving?.reopenAudit();
        await serving?.checkTls();
      }).then(() => {
        if (isServing()) supervisor.ready();
      });
    });

    const versions = {
      "quorate-version": QUORATE_VERSION,
      "etcd-version": SERVER_VERSION,
      "node-version": process.version,
    };
    logger.info("starting an etcd server", { ...versions, ...startFields(config) });
    try {
      serving = await serve(config, {
        clock: nodeClock,
        logger,
        logCounts: () => logger.counts(),
        onEnd: (error) => {
          if (stopping) return;
          if (error !== undefined)
            logger.error("the member has stopped", { ...describe(error), ...advice(error) });
          end(error === undefined ? 0 : 1);
        },
      });
      supervisor.waiting();
      // Not before it takes part in a working cluster, as etcd.
      void serving.member.ready.then(() => {
        isReady = true;
        if (!stopping) supervisor.ready();
      });
    } catch (error) {
      const { message } = error as Error;
      logger.error("failed to start the member", { error: message, ...advice(error) });
      end(1);
    }
  }
}
