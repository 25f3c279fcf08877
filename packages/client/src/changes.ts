/** The changes that a watch yields, decoded one by one. */
import { Event, Event_EventType, GrpcCode, KeyValue, type WatchResponse } from "@quorate/proto";
import { ClientError } from "./errors.ts";
import { withJson } from "./responses.ts";

/** One change of one key. */
export interface Change {
  readonly kind: "put" | "delete";
  /** After a delete: only the key and the revision of the delete (`modRevision`). */
  readonly kv: KeyValue;
  /** The record before, if the watch has `prevKv` and there was one. */
  readonly prevKv: KeyValue | undefined;
}

/**
 * The changes in `responses`, in order. Throws ClientError where the server ends the watch: with
 * code Compacted if the history that it needs is gone; the text names the first revision still
 * there.
 */
export async function* changesOf(
  responses: AsyncIterable<WatchResponse>,
): AsyncGenerator<Change, undefined> {
  for await (const response of responses) yield* changesIn(response);
}

/** The same of one response. */
export function changesIn(response: WatchResponse): Change[] {
  const { events, canceled, cancelReason, compactRevision } = response;
  if (canceled && compactRevision > 0) throw compacted(compactRevision);
  if (canceled) throw new ClientError(GrpcCode.Canceled, cancelReason);
  return events.map((event) => withJson(changeOf(event)));
}

function changeOf(bytes: Uint8Array): Change {
  const { type, kv, prevKv } = Event.decode(bytes);
  return {
    kind: type === Event_EventType.DELETE ? "delete" : "put",
    kv: kv === undefined ? KeyValue.create() : KeyValue.decode(kv),
    prevKv: prevKv === undefined ? undefined : KeyValue.decode(prevKv),
  };
}

function compacted(revision: number): ClientError {
  const text = "etcdserver: mvcc: required revision has been compacted";
  const cause = new Error(`the first revision that is still there is ${revision}`);
  return new ClientError(GrpcCode.OutOfRange, text, { cause });
}
