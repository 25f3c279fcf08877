import type { CommandBody } from "@quorate/cli";
import { badArguments, Exit, ExitCode, type Io, intFlag } from "@quorate/cli";
import type { Client, LeaseEnd, Session } from "@quorate/client";
import { type ClientKit, withClient } from "../connect/globals.ts";
import { printerOf } from "../printers/choose.ts";
import { rangeForm } from "../printers/kv-forms.ts";
import type { Printer } from "../printers/printer.ts";
import { getRecord } from "./get.ts";

/** etcdctl's error for a command that a signal interrupts. */
export function interruption(): Exit {
  return new Exit(ExitCode.error, "context canceled");
}

/**
 * Opens a session, runs `task` until it ends or SIGINT or SIGTERM aborts `stop`, and closes the
 * session, which releases its locks.
 */
export async function withSession<T>(
  { client }: ClientKit,
  io: Io,
  ttlSeconds: number,
  task: (session: Session, stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const forget = io.onStop(() => stop.abort(interruption()));
  try {
    const session = await client.session({ ttlSeconds });
    try {
      return await task(session, stop.signal);
    } finally {
      // Without a response the lease expires by itself.
      await session.close().catch(() => {});
    }
  } finally {
    forget();
  }
}

/** Resolves when `stop` is aborted; rejects with Exit if the session ends before. */
export async function holdUntil(stop: AbortSignal, session: Session, text: string): Promise<void> {
  const stopped = new Promise<"stopped">((resolve) => {
    if (stop.aborted) resolve("stopped");
    else stop.addEventListener("abort", () => resolve("stopped"));
  });
  const first: LeaseEnd | "stopped" = await Promise.race([stopped, session.ended]);
  if (first !== "stopped") throw new Exit(ExitCode.error, text);
}

/** Runs a program while the lock is held. Throws Exit with its exit code if it fails. */
async function runLocked(
  io: Io,
  command: readonly string[],
  key: string,
  revision: number,
  session: Session,
): Promise<void> {
  const child = io.run(command, { ETCD_LOCK_KEY: key, ETCD_LOCK_REV: String(revision), ...io.env });
  // The terminal sends Ctrl-C to the child as well; SIGTERM must be forwarded.
  const forget = io.onStop((signal) => {
    if (signal === "SIGTERM") child.kill(signal);
  });
  let isRunning = true;
  void session.ended.then(() => {
    if (isRunning)
      io.stderr("Warning: the session expired: the lock is lost while the command runs\n");
  });
  const { code, error } = await child.ended;
  isRunning = false;
  forget();
  if (error !== undefined) throw new Exit(code, error);
}

async function printRecord(client: Client, printer: Printer, key: string): Promise<void> {
  const response = await getRecord(client, key);
  if (response.kvs.length === 0) throw new Exit(ExitCode.error, "lock lost on init");
  printer.form(rangeForm, response);
}

export const lockCommand: CommandBody = {
  long: `Acquires a lock and holds it while a program runs or until stopped (Ctrl-C, SIGTERM).

The program runs with ETCD_LOCK_KEY and ETCD_LOCK_REV in its environment; its exit code becomes the
command's. Without a program, the lock's key is printed. If this process dies, the lock is released
after --ttl.`,
  flags: {
    ttl: intFlag("seconds until the lock is released if this process dies", "10"),
  },
  async run(invocation) {
    const { args, flags, io } = invocation;
    const [name, ...command] = args;
    if (name === undefined)
      throw badArguments("lock takes a lock name argument and an optional command to execute");
    const ttl = flags.int("ttl");
    if (ttl <= 0) throw badArguments(`--ttl must be a number of seconds above 0, not ${ttl}`);
    const printer = printerOf(invocation);
    await withClient(invocation, (kit) =>
      withSession(kit, io, ttl, async (session, stop) => {
        const lock = await kit.build.lockNamed(kit.client, session, name, { signal: stop });
        if (command.length > 0)
          await runLocked(io, command, lock.entry.key, lock.headerRevision, session);
        else {
          await printRecord(kit.client, printer, lock.entry.key);
          await holdUntil(stop, session, "session expired");
        }
        await lock.release();
      }),
    );
  },
};
