/** Watches over HTTP/2, many on a connection. */
import { type ClientHttp2Session, connect } from "node:http2";
import { type ApiServer, TOKEN } from "./servers.ts";

/** Fewer than either server lets one connection have. */
const WATCHES_OF_A_CONNECTION = 100;
const LINE_END = 10;

/** Counts the events that end in a piece of a stream: each is one line. */
function eventsIn(piece: Buffer): number {
  let count = 0;
  for (let at = piece.indexOf(LINE_END); at >= 0; at = piece.indexOf(LINE_END, at + 1)) count++;
  return count;
}

export class Watchers {
  readonly #sessions: ClientHttp2Session[] = [];
  #events = 0;

  /** Opens `count` watches of `path`; resolves when each has its response. */
  static async open(server: ApiServer, count: number, path: string): Promise<Watchers> {
    const watchers = new Watchers();
    const opened: Promise<void>[] = [];
    for (let i = 0; i < count; i++) {
      if (i % WATCHES_OF_A_CONNECTION === 0)
        watchers.#sessions.push(connect(server.url, { rejectUnauthorized: false }));
      opened.push(watchers.#watch(watchers.#sessions.at(-1)!, path));
    }
    await Promise.all(opened);
    return watchers;
  }

  /** Events that have arrived on all watches. */
  get events(): number {
    return this.#events;
  }

  close(): void {
    for (const session of this.#sessions) session.destroy();
  }

  #watch(session: ClientHttp2Session, path: string): Promise<void> {
    const stream = session.request({ ":path": path, authorization: `Bearer ${TOKEN}` });
    stream.on("data", (piece: Buffer) => {
      this.#events += eventsIn(piece);
    });
    return new Promise((resolve, reject) => {
      stream.on("error", reject);
      stream.once("response", ({ ":status": status }) => {
        if (status === 200) resolve();
        else reject(new Error(`a watch got status ${status}`));
      });
    });
  }
}
