import type { MessageType } from "./message.ts";
import { Reader } from "./reader.ts";
import { sharedWriter, type Writer } from "./writer.ts";

/** The part of a codec that is the same for all types of messages. */
export abstract class BaseCodec<T extends object> implements MessageType<T> {
  abstract readonly typeName: string;

  /** A message of defaults alone. */
  abstract zero(): T;

  abstract encodeTo(w: Writer, message: Partial<T>): void;

  abstract decodeFrom(r: Reader, into?: T): T;

  create(init: Partial<T> = {}): T {
    const message = this.zero();
    for (const name of Object.keys(message) as (keyof T)[])
      message[name] = init[name] ?? message[name];
    return message;
  }

  encode(message: Partial<T>): Uint8Array {
    sharedWriter.reset();
    this.encodeTo(sharedWriter, message);
    return sharedWriter.finish();
  }

  decode(bytes: Uint8Array): T {
    return this.decodeFrom(new Reader(bytes));
  }
}
