/** quoratectl top: samples, draws, waits; and leaves the terminal as it was, however it ends. */
import type { Invocation } from "../command.ts";
import { clientOf, tlsOf } from "../globals.ts";
import { Exit, ExitCode, type Io, type Terminal } from "../io.ts";
import { type Paint, paintFor, plain } from "../terminal.ts";
import { frame } from "./frame.ts";
import { type Sample, takeSample } from "./sample.ts";

/** Members are not asked more often. */
const MIN_INTERVAL_MS = 100;
/** Control-C, which a terminal in raw mode gives as a key. */
const INTERRUPT = "\u0003";

/** Throws Exit. */
export async function runTop(invocation: Invocation): Promise<void> {
  const { args, flags, io } = invocation;
  if (args.length > 0) throw new Exit(ExitCode.badArguments, "top command accepts no arguments");
  const intervalMs = flags.durationMs("interval");
  if (!(intervalMs >= MIN_INTERVAL_MS)) throw new Exit(ExitCode.badArguments, `--interval must be ${MIN_INTERVAL_MS}ms or more`);
  const tls = tlsOf(flags, io);
  const { client } = await clientOf(invocation);
  const options = {
    endpoints: flags.strings("endpoints"),
    tls,
    timeoutMs: flags.durationMs("command-timeout"),
    nowNs: () => io.nowNs(),
  };
  const sample = (): Promise<Sample> => takeSample(client, options);
  try {
    if (io.terminal === undefined || flags.bool("once")) await once(io, sample, intervalMs);
    else await live(io, io.terminal, sample, intervalMs);
  } finally {
    client.close();
  }
}

/** One frame without colours, of the time between two samples. */
async function once(io: Io, sample: () => Promise<Sample>, intervalMs: number): Promise<void> {
  const before = await sample();
  await io.sleep(intervalMs);
  const now = await sample();
  io.stdout(`${frame(now, before, undefined, plain).join("\n")}\n`);
  if (now.members.every(({ status }) => status === undefined)) throw new Exit(ExitCode.error, "no member answers");
}

async function live(io: Io, terminal: Terminal, sample: () => Promise<Sample>, intervalMs: number): Promise<void> {
  const screen = new Screen(io, terminal, paintFor(io));
  let isOver = false;
  let wake = (): void => {};
  let stop = (): void => {};
  const stopped = new Promise<void>((resolve) => {
    stop = () => {
      isOver = true;
      resolve();
      wake();
    };
  });
  const leave = terminal.enter();
  const undo = [
    io.onStop(stop),
    terminal.onResize(() => screen.draw()),
    terminal.onKey((key) => {
      if (key === "q" || key === "Q" || key === INTERRUPT) stop();
      else if (key === " ") wake();
    }),
  ];
  try {
    let before: Sample | undefined;
    while (!isOver) {
      const startNs = io.nowNs();
      // A member that hangs does not hold up the end.
      const now = await Promise.race([sample(), stopped]);
      if (now === undefined) break;
      screen.show(now, before);
      before = now;
      const leftMs = intervalMs - Number((io.nowNs() - startNs) / 1_000_000n);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(leftMs, 0));
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  } finally {
    for (const one of undo) one?.();
    leave();
  }
}

/** The frame that is shown. */
class Screen {
  readonly #io: Io;
  readonly #terminal: Terminal;
  readonly #paint: Paint;
  #now: Sample | undefined;
  #before: Sample | undefined;

  constructor(io: Io, terminal: Terminal, paint: Paint) {
    this.#io = io;
    this.#terminal = terminal;
    this.#paint = paint;
  }

  show(now: Sample, before: Sample | undefined): void {
    this.#now = now;
    this.#before = before;
    this.draw();
  }

  /** Draws over what is there, line by line, so that nothing flickers. */
  draw(): void {
    if (this.#now === undefined) return;
    const lines = frame(this.#now, this.#before, this.#terminal.size(), this.#paint);
    this.#io.stdout(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`);
  }
}
