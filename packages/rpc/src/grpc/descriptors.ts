/**
 * The parts of a FileDescriptorProto (google/protobuf/descriptor.proto) that reflection needs: its
 * name, its imports and its symbols.
 */
import { toUtf8 } from "@quorate/proto";
import { readFields } from "./wire.ts";

export interface FileDescriptor {
  readonly name: string;
  readonly imports: readonly string[];
  /** Full names of its services, methods, messages, enumerations and fields. */
  readonly symbols: readonly string[];
  readonly services: readonly string[];
  /** The encoded FileDescriptorProto. */
  readonly bytes: Uint8Array;
}

/** Field numbers of names and definitions in each kind of descriptor. */
const FILE = { name: 1, package: 2, dependency: 3, message: 4, enumeration: 5, service: 6 };
const MESSAGE = { field: 2, nested: 3, enumeration: 4 };
const SERVICE = { method: 2 };
const NAME = 1;

interface Definition {
  readonly name: string;
  /** Encoded nested definitions, by field number. */
  within(field: number): Uint8Array[];
}

function definition(bytes: Uint8Array): Definition {
  const fields = readFields(bytes);
  if (fields === undefined) throw new RangeError("not a descriptor");
  const within = (field: number): Uint8Array[] =>
    fields.flatMap((one) => (one.field === field && one.bytes ? [one.bytes] : []));
  return { name: within(NAME).map((name) => toUtf8(name))[0] ?? "", within };
}

/** Reads an encoded FileDescriptorProto; throws RangeError if it is malformed. */
export function readDescriptor(bytes: Uint8Array): FileDescriptor {
  const file = definition(bytes);
  const prefix = file.within(FILE.package).map((name) => `${toUtf8(name)}.`)[0] ?? "";
  const symbols: string[] = [];
  const services: string[] = [];
  const addMessage = (scope: string, encoded: Uint8Array): void => {
    const message = definition(encoded);
    const name = scope + message.name;
    symbols.push(name);
    for (const field of message.within(MESSAGE.field))
      symbols.push(`${name}.${definition(field).name}`);
    for (const nested of message.within(MESSAGE.nested)) addMessage(`${name}.`, nested);
    for (const one of message.within(MESSAGE.enumeration))
      symbols.push(`${name}.${definition(one).name}`);
  };
  for (const message of file.within(FILE.message)) addMessage(prefix, message);
  for (const one of file.within(FILE.enumeration)) symbols.push(prefix + definition(one).name);
  for (const encoded of file.within(FILE.service)) {
    const service = definition(encoded);
    services.push(prefix + service.name);
    symbols.push(prefix + service.name);
    for (const method of service.within(SERVICE.method))
      symbols.push(`${prefix}${service.name}.${definition(method).name}`);
  }
  return {
    name: file.name,
    imports: file.within(FILE.dependency).map((name) => toUtf8(name)),
    symbols,
    services,
    bytes,
  };
}
