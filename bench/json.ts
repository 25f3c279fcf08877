/**
 * ./dev bench json: what the JSON mapping of the gateway takes, in processor time.
 *
 *     ./dev bench json [--runs 7] [--count 100000]
 *
 * Small messages one by one, medians over the runs; large ones in the slices in which a member
 * works on them, with the longest slice.
 */

import {
  fromLatin1,
  type JsonMessage,
  jsonToWire,
  jsonTypes,
  KeyValue,
  PutResponse,
  RangeResponse,
  ResponseHeader,
  toBase64,
  transcodeRequest,
  transcodeResponse,
  wireToJson,
} from "@quorate/proto";
import { count, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { align, median } from "./report.ts";

const help = `./dev bench json [OPTIONS]: processor time of the JSON mapping`;
const { values: args } = readArguments(help, {
  runs: valueOption("runs of each row", "7"),
  count: valueOption("messages of a run", "100000"),
});
const runs = count("runs", args.runs);
const messages = count("count", args.count);
/** As the gateway. */
const SLICE_BYTES = 256 << 10;
const LARGE_KEYS = 100_000;
const LARGE_OPERATIONS = 10_000;

const typeOf = (name: string): JsonMessage => jsonTypes().get(`etcdserverpb.${name}`)!;
const base64 = (text: string): string => toBase64(fromLatin1(text));
const key = base64("key-00001234567");
const put = (valueBytes: number): string =>
  `{"key":"${key}","value":"${base64("x".repeat(valueBytes))}"}`;
const range = `{"key":"${key}","range_end":"${base64("key-00001234568")}","limit":"10"}`;
const compare = `{"target":"MOD","key":"${key}","result":"EQUAL","mod_revision":"123"}`;
const txn = `{"compare":[${compare}],"success":[{"request_put":${put(64)}}],"failure":[{"request_range":{"key":"${key}"}}]}`;

const header = ResponseHeader.create({
  clusterId: 14841639068965178418n,
  memberId: 10276657743932975437n,
  revision: 1234567,
  raftTerm: 2,
});
const record = (i: number): Uint8Array =>
  KeyValue.encode({
    key: fromLatin1(`key-${String(i).padStart(11, "0")}`),
    value: fromLatin1("x".repeat(64)),
    createRevision: 2,
    modRevision: i,
    version: 2,
    lease: 7587869134215678n,
  });
const rangeResponse = (keys: number): Uint8Array =>
  RangeResponse.encode({
    header,
    kvs: Array.from({ length: keys }, (_, i) => record(i)),
    count: keys,
  });

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Microseconds a call. */
function small(work: () => unknown): number {
  const measure = (): number => {
    const start = processorMs();
    for (let i = 0; i < messages; i++) work();
    return ((processorMs() - start) * 1000) / messages;
  };
  // The first run compiles the code.
  measure();
  return median(Array.from({ length: runs }, measure));
}

/** The longest step and all steps of a run, in milliseconds. */
function large(begin: () => () => boolean): [string, string] {
  const measured = Array.from({ length: runs + 1 }, () => {
    const step = begin();
    const steps: number[] = [];
    for (let isDone = false; !isDone; ) {
      const start = processorMs();
      isDone = step();
      steps.push(processorMs() - start);
    }
    return { longest: Math.max(...steps), total: steps.reduce((a, b) => a + b, 0) };
  }).slice(1);
  const of = (pick: (one: { longest: number; total: number }) => number): string =>
    median(measured.map(pick)).toFixed(2);
  return [of((one) => one.longest), of((one) => one.total)];
}

const request = (type: string, body: string): (() => unknown) => {
  const bytes = fromLatin1(body);
  const message = typeOf(type);
  return () => jsonToWire(message, bytes);
};
const response = (type: string, message: Uint8Array): (() => unknown) => {
  const of = typeOf(type);
  return () => wireToJson(of, message);
};
const slicedRequest = (type: string, body: string) => {
  const bytes = fromLatin1(body);
  return () => {
    const transcoding = transcodeRequest(typeOf(type), bytes);
    return () => transcoding.run(SLICE_BYTES) !== undefined;
  };
};

const one = rangeResponse(1);
const rows: readonly (readonly [string, () => unknown])[] = [
  ["put request, 64 bytes", request("PutRequest", put(64))],
  ["put request, 1 KiB", request("PutRequest", put(1024))],
  ["range request", request("RangeRequest", range)],
  ["txn request", request("TxnRequest", txn)],
  ["put response", response("PutResponse", PutResponse.encode({ header }))],
  ["range response, 1 key", response("RangeResponse", one)],
];
const table = rows.map(([name, work]) => [name, small(work).toFixed(2)]);
console.log(align([["message", "microseconds"], ...table], [0]).trimEnd());

const many = rangeResponse(LARGE_KEYS);
const operations = new Array<string>(LARGE_OPERATIONS).fill(`{"request_put":${put(64)}}`);
const slices: readonly (readonly [string, () => () => boolean])[] = [
  [
    "range response, 100,000 keys",
    () => {
      const pieces = transcodeResponse(typeOf("RangeResponse"), many);
      return () => pieces.next() === undefined;
    },
  ],
  ["txn request, 10,000 puts", slicedRequest("TxnRequest", `{"success":[${operations}]}`)],
  ["put request, 1.5 MiB", slicedRequest("PutRequest", put(3 << 19))],
];
const slow = slices.map(([name, begin]) => [name, ...large(begin)]);
console.log(align([["message", "longest slice, ms", "all slices, ms"], ...slow], [0]).trimEnd());
