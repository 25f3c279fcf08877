/**
 * A watch on the whole key space from a revision on. It yields the changes of one revision after
 * the other, each complete, and ends only by an error: the stream broke (open another), or the
 * cluster compacted the history that should come next.
 */
import type { Client, ClientStream } from "@quorate/client";
import {
  CodedError,
  defined,
  Event,
  Event_EventType,
  KeyValue,
  WatchCreateRequest,
  type WatchRequest,
  type WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { RevisionChange } from "../src/format.ts";

/** The cluster compacted changes before they were recorded. */
export class CompactedAwayError extends CodedError<"CompactedAway"> {
  readonly compactRevision: number;
  constructor(compactRevision: number) {
    super(
      "CompactedAwayError",
      "CompactedAway",
      `history up to revision ${compactRevision} was compacted`,
    );
    this.compactRevision = compactRevision;
  }
}

/** All changes of a revision. */
export interface FollowedRevision {
  readonly revision: number;
  readonly changes: readonly RevisionChange[];
  /** The leases that the changes attach keys to. */
  readonly leases: readonly bigint[];
}

/** One open watch stream. */
export class Follower {
  readonly #stream: ClientStream<WatchRequest, WatchResponse>;
  #last: number;

  private constructor(stream: ClientStream<WatchRequest, WatchResponse>, last: number) {
    this.#stream = stream;
    this.#last = last;
  }

  /** Opens a watch that starts at revision `last` + 1. Rejects with ClientError. */
  static async open(client: Client, last: number): Promise<Follower> {
    const stream = await client.stream(WatchService.methods.Watch);
    const everything = {
      key: new Uint8Array(1),
      rangeEnd: new Uint8Array(1),
      startRevision: last + 1,
    };
    stream.send({
      requestUnion: { case: "createRequest", value: WatchCreateRequest.create(everything) },
    });
    return new Follower(stream, last);
  }

  /**
   * The revisions of each response, ascending. Throws CompactedAwayError, ClientError, and Error
   * where revisions are missing.
   */
  async *revisions(): AsyncGenerator<FollowedRevision[]> {
    for await (const response of this.#stream) {
      if (response.canceled) {
        if (response.compactRevision > 0) throw new CompactedAwayError(response.compactRevision);
        throw new Error(`the watch was ended: ${response.cancelReason}`);
      }
      if (response.events.length > 0) yield this.#grouped(response.events);
    }
  }

  #grouped(events: readonly Uint8Array[]): FollowedRevision[] {
    const grouped: { revision: number; changes: RevisionChange[]; leases: bigint[] }[] = [];
    for (const bytes of events) {
      const event = Event.decode(bytes);
      const kv = KeyValue.decode(defined(event.kv, "the kv"));
      const deleted = event.type === Event_EventType.DELETE;
      if (kv.modRevision === this.#last + 1) {
        this.#last = kv.modRevision;
        grouped.push({ revision: kv.modRevision, changes: [], leases: [] });
      }
      const open = grouped.at(-1);
      if (kv.modRevision !== this.#last || open === undefined) {
        throw new Error(
          `the watch sent revision ${kv.modRevision} after ${this.#last}: changes are missing`,
        );
      }
      // As in the store, a deletion keeps only the key.
      open.changes.push({
        deleted,
        record: KeyValue.encode(deleted ? KeyValue.create({ key: kv.key }) : kv),
      });
      if (kv.lease !== 0n) open.leases.push(kv.lease);
    }
    return grouped;
  }

  close(): void {
    this.#stream.cancel();
  }

  /** Ends the stream; the next watch and the next call go to another member. */
  abandon(): void {
    this.#stream.abandon();
  }
}
