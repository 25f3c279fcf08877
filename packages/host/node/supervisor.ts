/**
 * Notifies a service manager of a member's state: systemd's protocol (sd_notify(3)), for units with
 * Type=notify.
 *
 *     NOTIFY_SOCKET in the environment    send: READY=1 when it serves, RELOADING=1 and READY=1
 *                                         around SIGHUP, STOPPING=1 at its end
 *     WATCHDOG_USEC as well               send WATCHDOG=1 twice in that time, as long as the
 *                                         member's event loop turns
 *
 * Node has no datagram sockets of the local family, so systemd-notify(1), which comes with systemd,
 * does the sending; the unit needs NotifyAccess=all for that. One message is sent after the other:
 * two processes at once may overtake each other, and a unit would stay "reloading". Without
 * NOTIFY_SOCKET nothing is started and nothing runs.
 */
import type { Clock, Timer } from "../src/clock.ts";
import type { Logger } from "../src/logger.ts";

/** Notifies the service manager; every call returns at once. */
export interface Supervisor {
  ready(): void;
  /** It has started, and waits for a working cluster. */
  waiting(): void;
  /** A reload begins; `ready` ends it. */
  reloading(): void;
  /** The member is ending; the watchdog is fed until the process is gone. */
  stopping(): void;
}

/** A message may take so long; after that its process is ended. */
const SEND_TIMEOUT_MS = 10_000;

const silent: Supervisor = { ready() {}, waiting() {}, reloading() {}, stopping() {} };

/** The supervisor that the environment names, or one that sends nothing. */
export function supervisorOf(
  env: Readonly<Record<string, string | undefined>>,
  deps: { readonly clock: Clock; readonly logger: Logger },
): Supervisor {
  if (!env["NOTIFY_SOCKET"]) return silent;
  return new Systemd(env, deps);
}

class Systemd implements Supervisor {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #watchdogMs: number;
  #timer: Timer | undefined;
  /** Messages that are on their way, and the end of the last one. */
  #sending = 0;
  #last: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(
    env: Readonly<Record<string, string | undefined>>,
    deps: { readonly clock: Clock; readonly logger: Logger },
  ) {
    this.#clock = deps.clock;
    this.#logger = deps.logger.child("supervisor");
    this.#env = env;
    this.#watchdogMs = Number(env["WATCHDOG_USEC"] ?? 0) / 1000;
  }

  ready(): void {
    this.#send(["READY=1", "STATUS=serving clients"]);
    if (this.#watchdogMs > 0)
      this.#timer ??= this.#clock.every(this.#watchdogMs / 2, () => this.#feed());
  }

  waiting(): void {
    this.#send(["STATUS=waiting for a quorum of the members and a leader"]);
  }

  reloading(): void {
    // systemd wants to know when the reload began on CLOCK_MONOTONIC, which is what Node's
    // high-resolution time is on Linux.
    this.#send(["RELOADING=1", `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`]);
  }

  stopping(): void {
    this.#send(["STOPPING=1", "STATUS=handing leadership over and closing"]);
  }

  #feed(): void {
    // Others are still on their way: the machine is too slow for another, or systemd does not take
    // them.
    if (this.#sending === 0) this.#send(["WATCHDOG=1"]);
  }

  #send(lines: readonly string[]): void {
    this.#sending++;
    this.#last = this.#last
      .then(() => this.#notify(lines))
      .finally(() => {
        this.#sending--;
      });
  }

  /** Resolves when the message was sent, or could not be. */
  #notify(lines: readonly string[]): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    // Loaded here: a member without a supervisor starts no process.
    const { execFile } = process.getBuiltinModule("node:child_process");
    const child = execFile(
      "systemd-notify",
      [`--pid=${process.pid}`, ...lines],
      { env: this.#env, timeout: SEND_TIMEOUT_MS },
      (error) => {
        resolve();
        if (error === null || this.#hasFailed) return;
        this.#hasFailed = true;
        this.#logger.warn("cannot notify the service manager", {
          error: error.message.trim(),
          advice: "install systemd-notify, or use Type=simple and no WatchdogSec in the unit",
        });
      },
    );
    child.unref();
    return promise;
  }
}
