/**
 * Server reflection (grpc/grpc, doc/server-reflection.md), versions v1 and v1alpha, which have the
 * same messages: tools such as grpcurl learn the services and their messages from the server.
 */
import { fromUtf8, GrpcCode, toUtf8 } from "@quorate/proto";
import { type ServiceTable, StatusError, type StreamCall, type StreamHandler } from "../service.ts";
import { type FileDescriptor, readDescriptor } from "./descriptors.ts";
import { readRequest, type WireField, writeFields } from "./wire.ts";

/** The fields of ServerReflectionRequest, one for each kind of request. */
const REQUEST = {
  fileByFilename: 3,
  fileContainingSymbol: 4,
  fileContainingExtension: 5,
  allExtensionNumbersOfType: 6,
  listServices: 7,
};
/** Fields of gRPC's ServerReflectionResponse. */
const RESPONSE = {
  validHost: 1,
  originalRequest: 2,
  fileDescriptors: 4,
  extensionNumbers: 5,
  services: 6,
  error: 7,
};

export class ReflectionService {
  readonly #files = new Map<string, FileDescriptor>();
  readonly #bySymbol = new Map<string, FileDescriptor>();
  readonly #services: readonly string[];

  /** The service's methods, for a ServiceTable. */
  readonly methods: ServiceTable = {
    unary: new Map(),
    stream: new Map<string, StreamHandler>(
      ["v1", "v1alpha"].map((version) => [
        `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
        (call: StreamCall) => ({
          message: (request: Uint8Array) => this.#respond(call, request),
          halfClosed: () => call.end(),
          drained: () => call.resume(),
        }),
      ]),
    ),
  };

  /**
   * @param descriptors encoded FileDescriptorProtos, with all their imports. Throws RangeError for
   * a malformed one. @param services the services to list; the server implements all of them.
   */
  constructor(descriptors: readonly Uint8Array[], services: readonly string[]) {
    this.#services = [...services].sort();
    for (const bytes of descriptors) {
      const file = readDescriptor(bytes);
      this.#files.set(file.name, file);
      for (const symbol of file.symbols) this.#bySymbol.set(symbol, file);
    }
  }

  #respond(call: StreamCall, request: Uint8Array): void {
    const fields = readRequest(request, "ServerReflectionRequest");
    const host = fields.findLast((one) => one.field === 1)?.bytes ?? new Uint8Array(0);
    // The last of alternative fields counts.
    const [field, value] = this.#responseTo(
      fields.findLast((one) => one.field >= REQUEST.fileByFilename),
    );
    const sent = call.send(
      writeFields([
        [RESPONSE.validHost, host],
        [RESPONSE.originalRequest, request],
        [field, value],
      ]),
    );
    if (!sent) call.pause();
  }

  #responseTo(asked: WireField | undefined): [field: number, value: Uint8Array] {
    const name = asked?.bytes === undefined ? "" : toUtf8(asked.bytes);
    switch (asked?.field) {
      case REQUEST.fileByFilename: {
        const file = this.#files.get(name);
        return file === undefined ? notFound(`file "${name}"`) : this.#withImports(file);
      }
      case REQUEST.fileContainingSymbol: {
        const file = this.#bySymbol.get(name);
        return file === undefined ? notFound(`symbol "${name}"`) : this.#withImports(file);
      }
      case REQUEST.fileContainingExtension:
        return notFound("extension");
      case REQUEST.allExtensionNumbersOfType:
        // Our messages have no extensions; a known type has an empty list.
        return this.#bySymbol.has(name)
          ? [RESPONSE.extensionNumbers, writeFields([[1, fromUtf8(name)]])]
          : notFound(`type "${name}"`);
      case REQUEST.listServices: {
        const list = this.#services.map((service): [number, Uint8Array] => [
          1,
          writeFields([[1, fromUtf8(service)]]),
        ]);
        return [RESPONSE.services, writeFields(list)];
      }
      default:
        throw new StatusError(
          GrpcCode.InvalidArgument,
          "invalid MessageRequest: it asks for nothing",
        );
    }
  }

  /** A file and all its imports, itself first. */
  #withImports(file: FileDescriptor): [field: number, value: Uint8Array] {
    const files = new Set([file]);
    // The iteration over the set includes elements that are added meanwhile.
    for (const one of files) {
      for (const name of one.imports) {
        const imported = this.#files.get(name);
        if (imported !== undefined) files.add(imported);
      }
    }
    return [
      RESPONSE.fileDescriptors,
      writeFields([...files].map((one): [number, Uint8Array] => [1, one.bytes])),
    ];
  }
}

function notFound(what: string): [field: number, value: Uint8Array] {
  return [
    RESPONSE.error,
    writeFields([
      [1, GrpcCode.NotFound],
      [2, fromUtf8(`${what} not found`)],
    ]),
  ];
}
