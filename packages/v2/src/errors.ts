/** The errors of the v2 API (etcd 3.4: etcdserver/api/v2error/error.go). */
import type { HttpResponse } from "@quorate/host";
import { CodedError } from "@quorate/proto";
import { goString } from "./json.ts";

interface Row {
  readonly code: number;
  readonly message: string;
  readonly status: number;
}

const row = (code: number, message: string, status = 400): Row => ({ code, message, status });

/** Those of etcd's codes that its server sends. */
export const V2_ERRORS = {
  KeyNotFound: row(100, "Key not found", 404),
  TestFailed: row(101, "Compare failed", 412),
  NotFile: row(102, "Not a file", 403),
  NotDir: row(104, "Not a directory"),
  NodeExist: row(105, "Key already exists", 412),
  RootReadOnly: row(107, "Root is read only"),
  DirNotEmpty: row(108, "Directory not empty", 403),
  Unauthorized: row(110, "The request requires user authentication", 401),
  PrevValueRequired: row(201, "PrevValue is Required in POST form"),
  TtlNaN: row(202, "The given TTL in POST form is not a number"),
  IndexNaN: row(203, "The given index in POST form is not a number"),
  InvalidField: row(209, "Invalid field"),
  InvalidForm: row(210, "Invalid POST form"),
  RefreshValue: row(211, "Value provided on refresh"),
  RefreshTtlRequired: row(212, "A TTL must be provided on refresh"),
  RaftInternal: row(300, "Raft Internal Error", 500),
  LeaderElect: row(301, "During Leader Election", 500),
  WatcherCleared: row(400, "watcher is cleared due to etcd recovery"),
  EventIndexCleared: row(401, "The event in requested index is outdated and cleared"),
} as const satisfies { readonly [name: string]: Row };

export type V2ErrorName = keyof typeof V2_ERRORS;

/** An error with v2's body. */
export class V2Error extends CodedError<V2ErrorName> {
  /** Latin1. */
  readonly reason: string;
  readonly index: number;

  /**
   * @param reason the body's "cause"
   * @param index the store's revision; 0 where the request did not reach the store
   */
  constructor(code: V2ErrorName, reason: string, index = 0) {
    super("V2Error", code, `${V2_ERRORS[code].message} (${reason})`);
    this.reason = reason;
    this.index = index;
  }

  get status(): number {
    return V2_ERRORS[this.code].status;
  }

  /** The response, with the headers that every one has. */
  response(headers: Readonly<Record<string, string>>): HttpResponse {
    const { code, message, status } = V2_ERRORS[this.code];
    const reason = this.reason === "" ? "" : `"cause":${goString(this.reason)},`;
    return {
      status,
      headers: {
        ...headers,
        "content-type": "application/json",
        "x-etcd-index": String(this.index),
      },
      body: `{"errorCode":${code},"message":"${message}",${reason}"index":${this.index}}\n`,
    };
  }
}
