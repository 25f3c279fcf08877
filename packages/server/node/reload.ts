/**
 * What a running member reads again on SIGHUP: the log level in its configuration file,
 * certificates, and log files that something has moved away.
 *
 *     systemctl reload quorate   ->   SIGHUP   ->   reload
 *
 * Everything else in the file needs a restart, and a change of it is named in a warning. A file
 * that cannot be used changes nothing.
 */
import type { NodeLogger } from "@quorate/host/node";
import { type Invocation, loadConfig } from "../src/config/load.ts";
import type { LogConfig, ServerConfig } from "../src/config/server-config.ts";
import { defaultHost, readTextFile } from "./cli/surroundings.ts";

/** What the process was started with. */
export interface StartedWith {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: ServerConfig;
}

/**
 * The level of a logger for a threshold of the configuration: lines that only end the process are
 * errors here.
 */
export function loggerLevel(log: LogConfig): "debug" | "info" | "warn" | "error" {
  return log.level === "fatal" ? "error" : log.level;
}

/** Fields of the configuration that are taken without a restart. */
const RELOADED = new Set<string>(["log"]);

/** Does what SIGHUP asks for. Never rejects: what cannot be used is a warning. */
export async function reload(
  started: StartedWith,
  logger: NodeLogger,
  checkTls: () => Promise<void>,
): Promise<void> {
  logger.reopen();
  logger.info("reloading on a signal", { signal: "hangup" });
  try {
    const now: Invocation = await loadConfig(started.argv, started.env, readTextFile, defaultHost);
    if (now.kind === "run") {
      takeLogLevel(started.config.log, now.config.log, logger);
      const waiting = changedFields(started.config, now.config);
      if (waiting.length > 0)
        logger.warn("changes of the configuration wait for a restart", { settings: waiting });
    }
  } catch (error) {
    logger.warn(
      "cannot use the changed configuration; the member goes on with the one from before",
      { error: (error as Error).message },
    );
  }
  await checkTls();
}

function takeLogLevel(before: LogConfig, now: LogConfig, logger: NodeLogger): void {
  const level = loggerLevel(now);
  const old = logger.level();
  if (level !== old) {
    // Said while the more talkative of the two levels is in force.
    const say = () => logger.info("the log level has changed", { from: old, to: level });
    const order = ["debug", "info", "warn", "error"];
    if (order.indexOf(level) > order.indexOf(old)) say();
    logger.setLevel(level);
    if (order.indexOf(level) < order.indexOf(old)) say();
  }
  const { level: _before, ...outputsBefore } = before;
  const { level: _now, ...outputsNow } = now;
  if (text(outputsBefore) !== text(outputsNow))
    logger.warn("changes of the configuration wait for a restart", { settings: ["log"] });
}

function changedFields(before: ServerConfig, now: ServerConfig): string[] {
  const names = Object.keys(now).filter((name) => !RELOADED.has(name)) as (keyof ServerConfig)[];
  return names.filter((name) => text(before[name]) !== text(now[name]));
}

/** A value as text that is equal for equal values. */
function text(value: unknown): string {
  return (
    JSON.stringify(value, (_key, part) =>
      typeof part === "bigint" ? `${part}n` : part instanceof Map ? [...part] : part,
    ) ?? ""
  );
}
