/** quoratectl top: polls, draws, waits; and restores the terminal, however it ends. */
import {
  badArguments,
  Exit,
  ExitCode,
  type Invocation,
  type Io,
  type Paint,
  paintFor,
  type Terminal,
} from "@quorate/cli";
import { accessOf, endpointsOf } from "../connect/globals.ts";
import { memberTimeoutMs } from "../observe/flags.ts";
import { loginStep, refusedLogin } from "../observe/login.ts";
import { type Prober, prober } from "../observe/prober.ts";
import { cellText, viewAt } from "./columns.ts";
import { type FrameSize, frame, plainFrame } from "./frame.ts";
import { afterKey, firstState, keyHelp, type ScreenState } from "./keys.ts";
import { boxed, cutLine, type Line, shownLine, span } from "./line.ts";
import { Observer } from "./observer.ts";
import { isFresh, pictureOf } from "./picture.ts";

/** Shortest polling interval. */
const MIN_INTERVAL_MS = 100;
/** Interval between checks of a slow terminal. */
const BEHIND_PAUSE_MS = 200;
/** Responses within this time are drawn together. */
const DRAW_PAUSE_MS = 30;

/** Throws Exit. */
export async function runTop(invocation: Invocation): Promise<void> {
  const { args, flags, io } = invocation;
  if (args.length > 0) throw badArguments("top command accepts no arguments");
  const intervalMs = flags.durationMs("interval");
  if (!(intervalMs >= MIN_INTERVAL_MS))
    throw badArguments(`--interval must be ${MIN_INTERVAL_MS}ms or more`);
  const timeoutMs = memberTimeoutMs(flags);
  const [endpoints, access] = [await endpointsOf(invocation), await accessOf(invocation)];
  const asked = prober(invocation, access, timeoutMs);
  const options = { endpoints, intervalMs, paint: paintFor(io, flags.bool("no-color")) };
  try {
    if (io.terminal === undefined || flags.bool("once")) await once(io, asked, options);
    else await live(io, io.terminal, asked, options);
  } finally {
    asked.close();
  }
}

export interface TopOptions {
  readonly endpoints: readonly string[];
  readonly intervalMs: number;
  readonly paint: Paint;
}

function monotonicMs(io: Io): number {
  return Number(io.nowNs() / 1000n) / 1000;
}

/**
 * Prints one frame without colours, over one interval. Throws Exit if no member responds.
 */
export async function once(
  io: Io,
  asked: Prober,
  { endpoints, intervalMs }: TopOptions,
): Promise<void> {
  const nowMs = (): number => monotonicMs(io);
  const observer = new Observer(asked, { endpoints, nowMs, onChange: () => {} });
  await observer.round();
  await io.sleep(intervalMs);
  await observer.round();
  // Members responded at different times of this round; all count as up to date.
  const picture = pictureOf(observer, {
    wallMs: Date.now(),
    nowMs: nowMs(),
    intervalMs: Number.MAX_SAFE_INTEGER,
  });
  io.stdout(`${plainFrame(picture).join("\n")}\n`);
  if (observer.rows.every(({ status, failure }) => status === undefined || failure !== undefined)) {
    const refused = observer.rows.map(refusedLogin).find((failure) => failure !== undefined);
    throw new Exit(
      ExitCode.error,
      refused === undefined ? "no member responds" : `${refused}: ${loginStep(refused)}`,
    );
  }
}

/** Draws until a key or a signal ends it. */
export async function live(
  io: Io,
  terminal: Terminal,
  asked: Prober,
  options: TopOptions,
): Promise<void> {
  const { endpoints, intervalMs, paint } = options;
  const nowMs = (): number => monotonicMs(io);
  let state = firstState;
  let drawing: NodeJS.Timeout | undefined;
  let ticking: NodeJS.Timeout | undefined;
  let fail = (_error: unknown): void => {};
  let stop = (): void => {};
  const over = new Promise<void>((resolve, reject) => {
    stop = resolve;
    fail = reject;
  });
  const observer = new Observer(asked, {
    endpoints,
    nowMs,
    onChange: () => {
      if (!state.isPaused) drawing ??= setTimeout(draw, DRAW_PAUSE_MS);
    },
  });
  // Overwrites the screen line by line, so that it does not flicker.
  function draw(): void {
    clearTimeout(drawing);
    drawing = undefined;
    // A late frame is useless: the next one is drawn once the terminal has accepted the last.
    if (terminal.isBehind()) {
      drawing = setTimeout(draw, BEHIND_PAUSE_MS);
      return;
    }
    try {
      const picture = pictureOf(observer, { wallMs: Date.now(), nowMs: nowMs(), intervalMs });
      const size = terminal.size();
      const lines = state.isHelp
        ? helpFrame(state, size, paint)
        : frame(picture, state, size, paint);
      io.stdout(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`);
    } catch (error) {
      fail(error);
    }
  }
  function tick(): void {
    const times = { nowMs: nowMs(), intervalMs };
    observer.tick((row) => isFresh(row, times));
    observer.round().catch(fail);
    // Figures age without responses, too.
    if (!state.isPaused) draw();
  }
  const leave = terminal.enter();
  const undo = [
    io.onStop(stop),
    terminal.onResize(draw),
    terminal.onKey((key) => {
      const { state: next, action } = afterKey(state, key, observer.rows.length);
      state = next;
      if (action === "quit") stop();
      else if (action === "ask") observer.round().catch(fail);
      if (action !== "quit") draw();
    }),
  ];
  try {
    draw();
    observer.round().catch(fail);
    ticking = setInterval(tick, intervalMs);
    await over;
  } finally {
    clearInterval(ticking);
    clearTimeout(drawing);
    for (const one of undo) one?.();
    leave();
  }
}

/** Keys, the columns of the table in view, and their thresholds. */
export function helpFrame({ view }: ScreenState, size: FrameSize, paint: Paint): string[] {
  const { name, columns } = viewAt(view);
  const keys = keyHelp.map(
    ([key, what]): Line => [span(key.padEnd(13), "bold", "cyan"), span(what)],
  );
  const titles = columns.map((column): Line => {
    const { title, doc, limits } = column;
    const marks =
      limits === undefined
        ? []
        : [
            span("  "),
            span(cellText(column, limits[0]), "yellow"),
            span(" "),
            span(cellText(column, limits[1]), "red"),
          ];
    return [span(title.padEnd(10), "bold"), span(doc), ...marks];
  });
  const about: Line[] = [
    [span("A silent member is dimmed; its figures are from its last response.", "dim")],
    [span("Yellow and red start at the values beside each column. Any key goes back.", "dim")],
  ];
  const width = Math.min(size.columns, 100);
  const lines = [
    ...boxed("keys", "", keys, width),
    ...boxed(`columns of ${name}`, "", titles, width),
    ...about,
  ];
  return lines.slice(0, size.rows).map((line) => shownLine(cutLine(line, size.columns), paint));
}
