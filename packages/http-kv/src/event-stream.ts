/**
 * Watch responses as Server-Sent Events (html.spec.whatwg.org, "server-sent events"): one message
 * for each revision, complete or not at all.
 *
 *     data: [{"type":"put","key":"a","value":"1",...},   one line for each event
 *     data: {"type":"delete","key":"b",...}]             the data of all lines is one JSON array
 *     id: 8                                              the revision; a client resumes behind it
 *     (empty line)                                       only here does the client take the message
 *
 * A revision is never cut between two responses, but a response may be cut into fragments, between
 * any two events. So a message that is begun is ended by an event of another revision, or by the
 * end of a response that is not a fragment. The id comes last: the revision is complete then.
 */
import { Event, Event_EventType, KeyValue, WatchResponse } from "@quorate/proto";
import { jsonOfBytes, jsonOfPair } from "./records.ts";

/** An event as the lines of its message. */
interface Line {
  readonly revision: number;
  readonly json: string;
}

/** Lines that are kept while a turn lasts, and the characters in them. */
export const MAX_SHARED_LINES = 1024;
const MAX_SHARED_CHARS: number = 1 << 20;
/** Events that are encoded at once in one turn: some 4 ms. What comes beyond them waits. */
export const MAX_LINES_IN_TURN = 1000;

/**
 * Lines of events, made once for all streams that get the same event in one turn: the watch hub
 * passes the same bytes to each.
 */
export class EventLines {
  readonly #endOfTurn: (task: () => void) => void;
  readonly #lines = new Map<Uint8Array, readonly Line[]>();
  #chars = 0;
  #made = 0;
  #isResetScheduled = false;

  /** @param endOfTurn runs a task at the end of the turn */
  constructor(endOfTurn: (task: () => void) => void) {
    this.#endOfTurn = endOfTurn;
  }

  /** Pieces whose lines are kept now. */
  get size(): number {
    return this.#lines.size;
  }

  /** Whether a piece may be encoded in this turn. */
  mayEncode(piece: Uint8Array): boolean {
    return this.#made < MAX_LINES_IN_TURN || this.#lines.has(piece);
  }

  /** The events in a piece of a response. */
  of(piece: Uint8Array): readonly Line[] {
    const kept = this.#lines.get(piece);
    if (kept !== undefined) return kept;
    const lines = WatchResponse.decode(piece).events.map(lineOf);
    this.#made += lines.length;
    this.#keep(piece, lines);
    return lines;
  }

  #keep(piece: Uint8Array, lines: readonly Line[]): void {
    for (const { json } of lines) this.#chars += json.length;
    if (this.#chars > MAX_SHARED_CHARS || this.#lines.size === MAX_SHARED_LINES) this.#clear();
    this.#lines.set(piece, lines);
    if (this.#isResetScheduled) return;
    this.#isResetScheduled = true;
    this.#endOfTurn(() => {
      this.#isResetScheduled = false;
      this.#made = 0;
      this.#clear();
    });
  }

  #clear(): void {
    this.#lines.clear();
    this.#chars = 0;
  }
}

function lineOf(bytes: Uint8Array): Line {
  const { type, kv: kvBytes, prevKv } = Event.decode(bytes);
  const kv = KeyValue.decode(kvBytes ?? new Uint8Array(0));
  const before = prevKv === undefined ? "" : `,"previous":${jsonOfPair(KeyValue.decode(prevKv))}`;
  const json =
    type === Event_EventType.DELETE
      ? `{"type":"delete","key":${jsonOfBytes(kv.key)},"mod_revision":${kv.modRevision}${before}}`
      : `{"type":"put",${jsonOfPair(kv).slice(1, -1)}${before}}`;
  return { revision: kv.modRevision, json };
}

/** Frames of one stream. */
export class EventFrames {
  #openRevision: number | undefined;

  /** The text of one more event; where it begins another revision, it ends the message before. */
  event({ revision, json }: Line): string {
    if (revision === this.#openRevision) return `,\ndata: ${json}`;
    const text = `${this.end()}data: [${json}`;
    this.#openRevision = revision;
    return text;
  }

  /** Ends the message that is open, if there is one. */
  end(): string {
    const text = this.#openRevision === undefined ? "" : `]\nid: ${this.#openRevision}\n\n`;
    this.#openRevision = undefined;
    return text;
  }
}

/** A message of a type of its own. @param id undefined: the client keeps the last one */
export function typedMessage(type: string, id: number | undefined, json: string): string {
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  return `event: ${type}\ndata: ${json}\n${idLine}\n`;
}

/**
 * A comment, and an id without data: the client notes the revision, and its program sees nothing.
 */
export function quietProgress(comment: string, revision: number): string {
  return `: ${comment}\nid: ${revision}\n\n`;
}
