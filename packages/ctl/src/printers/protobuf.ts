/** The answer's protobuf bytes, for programs. */
import {
  AlarmResponse,
  DeleteRangeResponse,
  MemberAddResponse,
  MemberListResponse,
  MemberPromoteResponse,
  MemberRemoveResponse,
  MemberUpdateResponse,
  type MessageType,
  MoveLeaderResponse,
  PutResponse,
  RangeResponse,
  TxnResponse,
} from "@quorate/proto";
import { Exit, ExitCode } from "../io.ts";
import type { Form } from "./form.ts";
import type { Printer, Sink } from "./printer.ts";

export class ProtobufPrinter implements Printer {
  readonly #sink: Sink;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  form<T>(form: Form<T>, answer: T): void {
    if (form.protobuf === undefined) unsupported();
    this.#sink.stdout(form.protobuf(answer));
  }

  get(response: RangeResponse): void {
    this.#print(RangeResponse, response);
  }

  put(response: PutResponse): void {
    this.#print(PutResponse, response);
  }

  del(response: DeleteRangeResponse): void {
    this.#print(DeleteRangeResponse, response);
  }

  txn(response: TxnResponse): void {
    this.#print(TxnResponse, response);
  }

  memberList(response: MemberListResponse): void {
    this.#print(MemberListResponse, response);
  }

  alarm(response: AlarmResponse): void {
    this.#print(AlarmResponse, response);
  }

  memberAdd(response: MemberAddResponse): void {
    this.#print(MemberAddResponse, response);
  }

  memberRemove(_id: bigint, response: MemberRemoveResponse): void {
    this.#print(MemberRemoveResponse, response);
  }

  memberUpdate(_id: bigint, response: MemberUpdateResponse): void {
    this.#print(MemberUpdateResponse, response);
  }

  memberPromote(_id: bigint, response: MemberPromoteResponse): void {
    this.#print(MemberPromoteResponse, response);
  }

  moveLeader(_leader: bigint, _target: bigint, response: MoveLeaderResponse): void {
    this.#print(MoveLeaderResponse, response);
  }

  endpointHealth(): void {
    unsupported();
  }

  endpointStatus(): void {
    unsupported();
  }

  endpointHashKv(): void {
    unsupported();
  }

  #print<T>(type: MessageType<T>, message: T): void {
    this.#sink.stdout(type.encode(message as Partial<T>));
  }
}

function unsupported(): never {
  throw new Exit(ExitCode.badFeature, "protobuf not supported as output format");
}
