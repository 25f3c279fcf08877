/** Tables, for what has rows; the rest cannot be printed so. */
import type { HashKVResponse, MemberListResponse, StatusResponse } from "@quorate/proto";
import { Exit, ExitCode } from "../io.ts";
import type { EndpointAnswer, EndpointHealth, Printer, Sink } from "./printer.ts";
import { drawTable, hashTable, healthTable, memberTable, statusTable } from "./tables.ts";

export class TablePrinter implements Printer {
  readonly #sink: Sink;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  form(): void {
    unsupported();
  }

  get(): void {
    unsupported();
  }

  put(): void {
    unsupported();
  }

  del(): void {
    unsupported();
  }

  txn(): void {
    unsupported();
  }

  alarm(): void {
    unsupported();
  }

  memberList(response: MemberListResponse): void {
    this.#sink.stdout(drawTable(memberTable(response)));
  }

  memberAdd(): void {
    unsupported();
  }

  memberRemove(): void {
    unsupported();
  }

  memberUpdate(): void {
    unsupported();
  }

  memberPromote(): void {
    unsupported();
  }

  moveLeader(): void {
    unsupported();
  }

  endpointHealth(list: readonly EndpointHealth[]): void {
    this.#sink.stdout(drawTable(healthTable(list)));
  }

  endpointStatus(list: readonly EndpointAnswer<StatusResponse>[]): void {
    this.#sink.stdout(drawTable(statusTable(list)));
  }

  endpointHashKv(list: readonly EndpointAnswer<HashKVResponse>[]): void {
    this.#sink.stdout(drawTable(hashTable(list)));
  }
}

function unsupported(): never {
  throw new Exit(ExitCode.badFeature, "table not supported as output format");
}
