/**
 * POST /txn: a transaction in plain JSON, and its response.
 *
 *     {"succeeded":true,"revision":8,"results":[
 *     {},                                             put; with "previous" the pair before it
 *     {"kvs":[...],"count":1,"more":false},           get; with "keys" the pairs have no values
 *     {"deleted":2}                                   delete; with "previous" the pairs
 *     ]}
 */

import type { SharedTurns } from "@quorate/member";
import {
  fromUtf8,
  KeyValue,
  KVService,
  type RequestOp,
  type ResponseOp,
  type TxnResponse,
} from "@quorate/proto";
import { clientOf } from "@quorate/rpc";
import type { ServiceCalls } from "@quorate/services";
import type { Steps } from "@quorate/store";
import { Query } from "./key-path.ts";
import type { KvExchange } from "./kv-exchange.ts";
import { jsonOfPair, revisionHeader } from "./records.ts";
import { txnOfBody } from "./txn-request.ts";

const { Txn } = KVService.methods;

/** Text that is encoded in one step, and sent as one piece; one pair may be longer. */
const PIECE_CHARS: number = 64 << 10;

export interface TxnDeps {
  readonly calls: ServiceCalls;
  readonly turns: SharedTurns;
  /** --max-txn-ops */
  readonly maxOps: number;
}

/** Serves POST /txn: 200, whether its comparisons hold or not. */
export async function txn(exchange: KvExchange, deps: TxnDeps): Promise<void> {
  new Query(exchange.head.query, []);
  const request = txnOfBody(exchange.takeBody(), deps.maxOps);
  const response = await deps.calls.unary(Txn, request, exchange.caller);
  const ops = response.succeeded ? request.success : request.failure;
  const revision = response.header?.revision ?? 0;
  const caller = { client: clientOf(exchange.caller), address: exchange.caller.peerAddress };
  const pieces = await deps.turns.run(caller, piecesOf(response, ops));
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const headers = { "content-type": "application/json", ...revisionHeader(revision) };
  if (pieces.length === 1) {
    exchange.respond(200, headers, pieces[0]);
    return;
  }
  exchange.start(200, { ...headers, "content-length": String(length) });
  for (const piece of pieces) if (!(await exchange.sendAndWait(piece))) return;
  exchange.end();
}

function* piecesOf(
  { succeeded, header, responses }: TxnResponse,
  ops: readonly RequestOp[],
): Steps<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let text = `{"succeeded":${succeeded},"revision":${header?.revision ?? 0},"results":[`;
  for (const [i, response] of responses.entries()) {
    text += i === 0 ? "\n" : ",\n";
    for (const part of partsOf(response, ops[i])) {
      text += part;
      if (text.length < PIECE_CHARS) continue;
      pieces.push(fromUtf8(text));
      text = "";
      yield;
    }
  }
  pieces.push(fromUtf8(`${text}${responses.length === 0 ? "" : "\n"}]}\n`));
  return pieces;
}

/** The parts of one result, pair by pair. */
function* partsOf({ response }: ResponseOp, op: RequestOp | undefined): Generator<string> {
  switch (response?.case) {
    case "responsePut": {
      const { prevKv } = response.value;
      yield prevKv === undefined ? "{}" : `{"previous":${jsonOfPair(KeyValue.decode(prevKv))}}`;
      break;
    }
    case "responseRange": {
      const { kvs, count, more } = response.value;
      const keysOnly = op?.request?.case === "requestRange" && op.request.value.keysOnly;
      yield '{"kvs":[';
      yield* pairsOf(kvs, keysOnly);
      yield `],"count":${count},"more":${more}}`;
      break;
    }
    case "responseDeleteRange": {
      const { deleted, prevKvs } = response.value;
      yield `{"deleted":${deleted}`;
      if (prevKvs.length > 0) {
        yield ',"previous":[';
        yield* pairsOf(prevKvs, false);
        yield "]";
      }
      yield "}";
      break;
    }
    default:
      yield "{}";
  }
}

function* pairsOf(records: readonly Uint8Array[], keysOnly: boolean): Generator<string> {
  for (const [i, record] of records.entries())
    yield (i === 0 ? "" : ",") + jsonOfPair(KeyValue.decode(record), { keysOnly });
}
