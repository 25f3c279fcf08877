/**
 * A printer that refuses everything, in etcdctl's words; those that print some answers only are
 * made of it.
 */
import { Exit, ExitCode } from "../io.ts";
import type { Printer } from "./printer.ts";

export class RefusingPrinter implements Printer {
  readonly #name: string;

  /** @param name of the form of output */
  constructor(name: string) {
    this.#name = name;
  }

  form(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  get(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  put(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  del(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  txn(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  memberList(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  memberAdd(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  memberRemove(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  memberUpdate(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  memberPromote(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  moveLeader(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  endpointHealth(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  endpointStatus(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  endpointHashKv(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  alarm(..._answer: readonly unknown[]): void {
    this.refuse();
  }

  /** Throws Exit: there is no such form of the answer. */
  refuse(): never {
    throw new Exit(ExitCode.badFeature, `${this.#name} not supported as output format`);
  }
}
