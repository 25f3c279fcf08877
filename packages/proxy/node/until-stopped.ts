/** A program that serves until a signal ends it. */
import type { Invocation } from "@quorate/cli";
import type { Logger } from "@quorate/host";
import { nodeClock, supervisorOf } from "@quorate/host/node";

/** Notifies the service manager that the program serves; resolves when a signal is to end it. */
export function untilStopped(io: Invocation["io"], logger: Logger): Promise<void> {
  const supervisor = supervisorOf(process.env, { clock: nodeClock, logger });
  supervisor.ready();
  return new Promise((resolve) => {
    io.onStop((signal) => {
      logger.info("received signal; shutting down", { signal });
      supervisor.stopping();
      resolve();
    });
  });
}
