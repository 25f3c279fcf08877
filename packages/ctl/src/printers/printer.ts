/**
 * Ways to print answers, chosen by --write-out. The texts are etcdctl 3.7's, byte for byte, because
 * scripts read them. Answers that have a Form are printed by `form`; the others have functions of
 * their own.
 */
import type {
  AlarmResponse,
  DeleteRangeResponse,
  HashKVResponse,
  MemberAddResponse,
  MemberListResponse,
  MemberPromoteResponse,
  MemberRemoveResponse,
  MemberUpdateResponse,
  MoveLeaderResponse,
  PutResponse,
  RangeResponse,
  ResponseHeader,
  StatusResponse,
  TxnResponse,
} from "@quorate/proto";
import type { Form } from "./form.ts";

/** What a member said of its health. */
export interface EndpointHealth {
  readonly endpoint: string;
  readonly health: boolean;
  /** A duration in Go's form. */
  readonly took: string;
  /** Empty if it is healthy. */
  readonly error: string;
}

/** A member's answer under the endpoint that was asked. */
export interface EndpointAnswer<T> {
  readonly endpoint: string;
  readonly response: T;
}

export interface Printer {
  /** Prints an answer as its form says. Throws Exit where etcdctl has no such form of it. */
  form<T extends { readonly header: ResponseHeader | undefined }>(form: Form<T>, answer: T): void;
  get(response: RangeResponse): void;
  put(response: PutResponse): void;
  del(response: DeleteRangeResponse): void;
  txn(response: TxnResponse): void;
  memberList(response: MemberListResponse): void;
  memberAdd(response: MemberAddResponse): void;
  memberRemove(id: bigint, response: MemberRemoveResponse): void;
  memberUpdate(id: bigint, response: MemberUpdateResponse): void;
  memberPromote(id: bigint, response: MemberPromoteResponse): void;
  moveLeader(leader: bigint, target: bigint, response: MoveLeaderResponse): void;
  endpointHealth(list: readonly EndpointHealth[]): void;
  endpointStatus(list: readonly EndpointAnswer<StatusResponse>[]): void;
  endpointHashKv(list: readonly EndpointAnswer<HashKVResponse>[]): void;
  alarm(response: AlarmResponse): void;
}

/** Where printers write. */
export interface Sink {
  stdout(content: string | Uint8Array): void;
  stderr(text: string): void;
}
