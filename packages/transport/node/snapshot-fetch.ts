/**
 * A snapshot whose sender cannot dial the receiver, which can dial the sender:
 *
 *     sender                                           receiver
 *     the MsgSnap, on the receiver's urgent stream -->
 *                                                 <--  POST /raft/snapshot/fetch
 *     200, then the frames as of every snapshot    -->
 *                                                 <--  the request's body: status and text
 *
 * The receiver keeps the body of its request open until it has taken the snapshot over, or not.
 */
import type { ServerHttp2Stream } from "node:http2";
import { DialError, dial, type Link, watchedSession, watchLink } from "./dial.ts";
import { answerHeaders, FETCH_PATH } from "./headers.ts";
import { peerFields, type Shared } from "./options.ts";
import { type Answer, answerTo, openStream, refusedBy } from "./request.ts";
import type { SnapshotReceiver } from "./snapshot-receiver.ts";

/** More of a verdict is not read. */
const MAX_VERDICT_BYTES = 1024;

/** One snapshot that this member comes for. */
export class SnapshotFetch {
  readonly #shared: Shared;
  readonly #receiver: SnapshotReceiver;
  readonly #from: bigint;
  #stop: () => void = () => {};
  #stopped = false;

  /** @param from the member that has announced the snapshot */
  constructor(shared: Shared, receiver: SnapshotReceiver, from: bigint) {
    this.#shared = shared;
    this.#receiver = receiver;
    this.#from = from;
  }

  /** Gives up; `run` then resolves soon. */
  stop(): void {
    this.#stopped = true;
    this.#stop();
  }

  /**
   * Fetches the snapshot and hands it to the member. Resolves once the sender is sent what became
   * of it; never rejects.
   * @param url where the sender is dialled
   */
  async run(url: string): Promise<void> {
    const { logger, options } = this.#shared;
    try {
      const dialled = dial(this.#shared, url, options.dialTimeoutMs);
      this.#stop = () => dialled.stop();
      const link = await dialled.link;
      this.#stop = () => link.session.destroy();
      try {
        await this.#fetch(link);
        // Not destroyed at once: what it said of the snapshot may still be on its way.
        this.#closeSoon(link);
      } catch (error) {
        link.session.destroy();
        throw error;
      }
    } catch (error) {
      if (this.#stopped) return;
      logger.warn("failed to fetch a database snapshot", {
        ...peerFields(this.#shared, this.#from),
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  async #fetch(link: Link): Promise<void> {
    const { session } = link;
    const { clock, options } = this.#shared;
    watchLink(this.#shared, watchedSession(link), () => {});
    const stream = openStream(this.#shared, session, this.#from, FETCH_PATH);
    const late = clock.after(options.dialTimeoutMs, () => session.destroy());
    const answer = await answerTo(stream, false).finally(() => late.cancel());
    if (answer.status >= 300) throw refusedBy(this.#shared, answer);
    await this.#receiver.receive({ form: "quorate", stream }, this.#from, (status, text) =>
      stream.end(`${status} ${text}`),
    );
  }

  #closeSoon({ session }: Link): void {
    const { clock, options } = this.#shared;
    const late = clock.after(options.dialTimeoutMs, () => session.destroy());
    session.once("close", () => late.cancel());
    session.close();
  }
}

/**
 * Agrees to send a snapshot as the answer of a request for it.
 * @returns what the receiver says of it in the end; rejects with DialError if it goes without a
 * word
 */
export function agreeToSend(shared: Shared, stream: ServerHttp2Stream): Promise<Answer> {
  stream.respond({ ":status": 200, ...answerHeaders(shared.options) });
  return new Promise((resolve, reject) => {
    let verdict = "";
    stream.on("data", (chunk: Buffer) => {
      const freeBytes = MAX_VERDICT_BYTES - verdict.length;
      if (freeBytes > 0) verdict += chunk.toString("utf8", 0, freeBytes);
    });
    const complete = () => {
      const [, status, text = ""] = /^(\d{3}) (.*)/s.exec(verdict) ?? [];
      if (status !== undefined) resolve({ status: Number(status), headers: {}, text });
      else reject(new DialError("Failed", "connection closed before the peer answered"));
    };
    stream.on("end", complete);
    stream.on("close", complete);
  });
}
