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
import type { Form } from "./form.ts";
import type { Sink } from "./printer.ts";
import { RefusingPrinter } from "./refusing.ts";

export class ProtobufPrinter extends RefusingPrinter {
  readonly #sink: Sink;

  constructor(sink: Sink) {
    super("protobuf");
    this.#sink = sink;
  }

  override form<T>(form: Form<T>, answer: T): void {
    if (form.protobuf === undefined) this.refuse();
    this.#sink.stdout(form.protobuf(answer));
  }

  override get(response: RangeResponse): void {
    this.#print(RangeResponse, response);
  }

  override put(response: PutResponse): void {
    this.#print(PutResponse, response);
  }

  override del(response: DeleteRangeResponse): void {
    this.#print(DeleteRangeResponse, response);
  }

  override txn(response: TxnResponse): void {
    this.#print(TxnResponse, response);
  }

  override memberList(response: MemberListResponse): void {
    this.#print(MemberListResponse, response);
  }

  override alarm(response: AlarmResponse): void {
    this.#print(AlarmResponse, response);
  }

  override memberAdd(response: MemberAddResponse): void {
    this.#print(MemberAddResponse, response);
  }

  override memberRemove(_id: bigint, response: MemberRemoveResponse): void {
    this.#print(MemberRemoveResponse, response);
  }

  override memberUpdate(_id: bigint, response: MemberUpdateResponse): void {
    this.#print(MemberUpdateResponse, response);
  }

  override memberPromote(_id: bigint, response: MemberPromoteResponse): void {
    this.#print(MemberPromoteResponse, response);
  }

  override moveLeader(_leader: bigint, _target: bigint, response: MoveLeaderResponse): void {
    this.#print(MoveLeaderResponse, response);
  }

  #print<T>(type: MessageType<T>, message: T): void {
    this.#sink.stdout(type.encode(message as Partial<T>));
  }
}
