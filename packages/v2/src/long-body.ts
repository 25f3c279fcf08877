/** Sends the text of a response in pieces, in turns, no faster than its client reads. */
import { fromUtf8 } from "@quorate/proto";
import type { HttpCaller } from "./calls.ts";
import type { V2Exchange } from "./http.ts";

/** Characters that are sent at once; a shorter body is one piece. */
const PIECE_CHARS: number = 64 << 10;
/** Pieces of one turn of the event loop. */
const PIECES_PER_TURN = 8;

/** Resolves when all is sent, or the client is gone. */
export async function sendLong(
  { exchange, listen }: V2Exchange,
  caller: HttpCaller,
  headers: Readonly<Record<string, string>>,
  texts: readonly string[],
  nextTurn: () => Promise<void>,
): Promise<void> {
  let wake = (): void => {};
  listen({
    drained: () => wake(),
    aborted: () => {
      caller.cancel();
      wake();
    },
  });
  let sent = 0;
  for (const piece of joined(texts)) {
    if (sent === 0 && piece.isLast) {
      exchange.respond({ status: 200, headers, body: piece.text });
      return;
    }
    if (sent === 0) exchange.start(200, headers);
    const hasSpace = exchange.send(fromUtf8(piece.text));
    sent++;
    if (!hasSpace && !caller.cancelled) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    } else if (sent % PIECES_PER_TURN === 0) await nextTurn();
    if (caller.cancelled) return;
  }
  exchange.end();
}

interface Piece {
  readonly text: string;
  readonly isLast: boolean;
}

function* joined(texts: readonly string[]): Generator<Piece> {
  let text = "";
  for (const [i, one] of texts.entries()) {
    text += one;
    if (text.length < PIECE_CHARS || i === texts.length - 1) continue;
    yield { text, isLast: false };
    text = "";
  }
  yield { text, isLast: true };
}
