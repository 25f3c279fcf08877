/** The TypeScript client: connect() to a cluster, then get, put, delete, txn. The pure parts are in src/, the sockets in node/. */
export { type ClientOptions, connect, type TlsOptions } from "./node/connect.ts";
export { Client } from "./src/client.ts";
export { type Endpoint, parseEndpoint } from "./src/endpoint.ts";
export { ClientError } from "./src/errors.ts";
export {
  type Bytes,
  type Comparison,
  compareCreateRevision,
  compareLease,
  compareModRevision,
  compareValue,
  compareVersion,
  type DeleteOptions,
  deleteRequest,
  type GetOptions,
  getRequest,
  opDelete,
  opGet,
  opPut,
  opTxn,
  type PutOptions,
  prefixEnd,
  putRequest,
  type RangeOptions,
  type TxnParts,
  txnRequest,
} from "./src/requests.ts";
export type { DeleteResult, GetResult, OpResult, PutResult, TxnResult } from "./src/responses.ts";
export type { ClientStream } from "./src/stream.ts";
