/** How keys change the screen: a pure function from one state to the next. */
import { defined } from "@quorate/proto";
import { viewAt, views } from "./columns.ts";

/** The state of the screen. */
export interface ScreenState {
  readonly view: number;
  /**
   * The title of the sort column; for a title that the view lacks, rows stay in the cluster's
   * order.
   */
  readonly sortBy: string;
  readonly descending: boolean;
  readonly isHelp: boolean;
  /** While paused nothing new is drawn. */
  readonly isPaused: boolean;
  /** Number of rows scrolled past. */
  readonly scrolled: number;
}

export const firstState: ScreenState = {
  view: 0,
  sortBy: "MEMBER",
  descending: false,
  isHelp: false,
  isPaused: false,
  scrolled: 0,
};

/** An action that a key triggers besides a new state. */
export type Action = "quit" | "ask" | undefined;

/** Ctrl-C, which a terminal in raw mode sends as a key. */
const INTERRUPT = "\u0003";
const ESCAPE = "\u001b";

/** The keys, for the help. */
export const keyHelp: readonly (readonly [keys: string, what: string])[] = [
  ["q, ctrl-C", "end"],
  ["?, h", "show or leave this help"],
  ["1 to 4, tab", "members, latency, store, process"],
  ["s, S", "sort by the next column, the one before"],
  ["r", "reverse the order"],
  ["up, down", "scroll through the members"],
  ["space", "refresh"],
  ["p", "pause and continue"],
];

/** @param rows number of members */
export function afterKey(
  state: ScreenState,
  key: string,
  rows: number,
): { readonly state: ScreenState; readonly action: Action } {
  const to = (change: Partial<ScreenState>): { state: ScreenState; action: Action } => ({
    state: { ...state, ...change },
    action: undefined,
  });
  if (key === "q" || key === "Q" || key === INTERRUPT) return { state, action: "quit" };
  if (key === "?" || key === "h") return to({ isHelp: !state.isHelp });
  // Any other key leaves the help.
  if (state.isHelp) return to({ isHelp: false });
  if (key === " ") return { state: { ...state, isPaused: false }, action: "ask" };
  if (key === "p") return to({ isPaused: !state.isPaused });
  if (key === "r") return to({ descending: !state.descending });
  if (key === "s" || key === "S") return to(sortedByNext(state, key === "s" ? 1 : -1));
  if (key === "\t") return to({ view: (state.view + 1) % views.length, scrolled: 0 });
  const digit = Number(key);
  if (key !== "" && digit >= 1 && digit <= views.length)
    return to({ view: digit - 1, scrolled: 0 });
  const down = key === `${ESCAPE}[B` || key === `${ESCAPE}OB` || key === "j";
  const up = key === `${ESCAPE}[A` || key === `${ESCAPE}OA` || key === "k";
  if (down || up)
    return to({
      scrolled: Math.min(Math.max(0, rows - 1), Math.max(0, state.scrolled + (down ? 1 : -1))),
    });
  return { state, action: undefined };
}

/** Numbers sort descending first, texts ascending. */
function sortedByNext({ view, sortBy }: ScreenState, step: number): Partial<ScreenState> {
  const { columns } = viewAt(view);
  const at = columns.findIndex(({ title }) => title === sortBy);
  const next = defined(columns[(at + step + columns.length) % columns.length], "a column");
  return { sortBy: next.title, descending: next.isText !== true };
}
