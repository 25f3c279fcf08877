/** What keys do to the screen: a pure step from one state to the next. */
import { views } from "./columns.ts";

/** What is shown, and how. */
export interface ScreenState {
  readonly view: number;
  /**
   * The title of the column that rows are sorted by; one that the view does not have leaves them in
   * the cluster's order.
   */
  readonly sortBy: string;
  readonly descending: boolean;
  readonly isHelp: boolean;
  /** Nothing new is drawn while it holds. */
  readonly isPaused: boolean;
  /** How many rows of members are scrolled past. */
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

/** What a key asks for beyond another state. */
export type Action = "quit" | "ask" | undefined;

/** Control-C, which a terminal in raw mode gives as a key. */
const INTERRUPT = "\u0003";
const ESCAPE = "\u001b";

/** The keys, for the help. */
export const keyHelp: readonly (readonly [keys: string, what: string])[] = [
  ["q, ctrl-C", "end"],
  ["?, h", "this help, and back"],
  ["1 to 4, tab", "members, latency, store, process"],
  ["s, S", "sort by the next column, the one before"],
  ["r", "turn the order round"],
  ["up, down", "scroll through the members"],
  ["space", "ask now"],
  ["p", "hold the picture, and go on"],
];

/** @param rows how many members there are */
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
  // Whatever else is typed leads back from the help.
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

/** Numbers begin with the greatest, texts with the first. */
function sortedByNext({ view, sortBy }: ScreenState, step: number): Partial<ScreenState> {
  const { columns } = views[view];
  const at = columns.findIndex(({ title }) => title === sortBy);
  const next = columns[(at + step + columns.length) % columns.length];
  return { sortBy: next.title, descending: next.isText !== true };
}
