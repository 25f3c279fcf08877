/** The calls about keys that the client's components use, so that they do not import Client. */

import type { RequestOp } from "@quorate/proto";
import type { CallOptions } from "./call-options.ts";
import type { Caller } from "./caller.ts";
import type { Bytes, DeleteOptions, GetOptions, PutOptions, TxnParts } from "./requests.ts";
import type { DeleteResult, GetResult, PutResult, TxnResultOf } from "./responses.ts";

/** Each as the client's method of the same name. */
export interface KvCaller extends Caller {
  get(key: Bytes, options?: GetOptions & CallOptions): Promise<GetResult>;
  put(key: Bytes, value: Bytes, options?: PutOptions & CallOptions): Promise<PutResult>;
  delete(key: Bytes, options?: DeleteOptions & CallOptions): Promise<DeleteResult>;
  txn<const S extends readonly RequestOp[], const F extends readonly RequestOp[]>(
    parts: TxnParts<S, F>,
    options?: CallOptions,
  ): Promise<TxnResultOf<S, F>>;
}
