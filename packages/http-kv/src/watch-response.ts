/** What a response of a watch says besides its events. */
import {
  type ErrorName,
  errorNameOf,
  errorOf,
  type ResponseHeader,
  WatchResponse,
} from "@quorate/proto";
import { Problem } from "./problems.ts";

/** WatchResponse.events. */
const EVENTS_TAG = 0x5a;

/** What a response says besides its events. */
export interface ResponseFlags {
  created: boolean;
  canceled: boolean;
  fragment: boolean;
  cancelReason: string;
  compactRevision: number;
  header: ResponseHeader | undefined;
}

/** A response is cut between fields: what its parts say is put together. */
export function flagsOf(pieces: readonly Uint8Array[]): ResponseFlags {
  const flags: ResponseFlags = {
    created: false,
    canceled: false,
    fragment: false,
    cancelReason: "",
    compactRevision: 0,
    header: undefined,
  };
  for (const piece of pieces) {
    if (piece[0] === EVENTS_TAG) continue;
    const { created, canceled, fragment, cancelReason, compactRevision, header } =
      WatchResponse.decode(piece);
    flags.created ||= created;
    flags.canceled ||= canceled;
    flags.fragment ||= fragment;
    flags.cancelReason ||= cancelReason;
    flags.compactRevision ||= compactRevision;
    flags.header ??= header;
  }
  return flags;
}

/** What comes before the text of a gRPC error in a reason. */
const REASON = /^rpc error: code = \w+ desc = /;

/** The error that a cancel_reason stands for. */
export function errorOfReason(reason: string): Error {
  const text = reason.replace(REASON, "");
  const name: ErrorName | undefined = errorNameOf(text);
  if (name !== undefined) return errorOf(name);
  if (/too many watches/.test(text)) return new Problem("too-many-requests", text);
  return new Problem("bad-request", text);
}
