/** Tables, for what has rows; the rest cannot be printed so. */
import type { HashKVResponse, MemberListResponse, StatusResponse } from "@quorate/proto";
import type { EndpointAnswer, EndpointHealth, Sink } from "./printer.ts";
import { RefusingPrinter } from "./refusing.ts";
import { drawTable, hashTable, healthTable, memberTable, statusTable } from "./tables.ts";

export class TablePrinter extends RefusingPrinter {
  readonly #sink: Sink;

  constructor(sink: Sink) {
    super("table");
    this.#sink = sink;
  }

  override memberList(response: MemberListResponse): void {
    this.#sink.stdout(drawTable(memberTable(response)));
  }

  override endpointHealth(list: readonly EndpointHealth[]): void {
    this.#sink.stdout(drawTable(healthTable(list)));
  }

  override endpointStatus(list: readonly EndpointAnswer<StatusResponse>[]): void {
    this.#sink.stdout(drawTable(statusTable(list)));
  }

  override endpointHashKv(list: readonly EndpointAnswer<HashKVResponse>[]): void {
    this.#sink.stdout(drawTable(hashTable(list)));
  }
}
