/**
 * The services' .proto files as encoded FileDescriptorProtos, one for each package, for gRPC's
 * server reflection. protobufjs makes them; what it leaves out is added here: full names of types,
 * and which file needs which.
 */
import { defined } from "@quorate/proto";
import type protobufjs from "protobufjs";
import descriptor from "protobufjs/ext/descriptor/index.js";

/** Its types do not name it. */
const { FileDescriptorProto } = descriptor as unknown as { FileDescriptorProto: protobufjs.Type };

/**
 * The health service has no codecs here (packages/rpc reads its one field by itself), but tools
 * want to know it too.
 */
const HEALTH = `
syntax = "proto3";
package grpc.health.v1;
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse {
  enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
  ServingStatus status = 1;
}
service Health {
  rpc Check(HealthCheckRequest) returns (HealthCheckResponse);
  rpc Watch(HealthCheckRequest) returns (stream HealthCheckResponse);
}
`;

interface DescriptorField {
  name: string;
  typeName?: string;
}

interface DescriptorMessage {
  name: string;
  field: DescriptorField[];
  nestedType: DescriptorMessage[];
}

interface DescriptorMethod {
  name: string;
  inputType: string;
  outputType: string;
  options?: unknown;
}

interface DescriptorFile {
  name: string;
  package: string;
  dependency: string[];
  messageType: DescriptorMessage[];
  service: { name: string; method: DescriptorMethod[] }[];
}

/** The text of gen/descriptors.ts. */
export function emitDescriptors(
  protobuf: typeof protobufjs,
  sources: ReadonlyMap<string, string>,
): string {
  const root = new protobuf.Root();
  for (const text of [...sources.values(), HEALTH]) protobuf.parse(text, root, { keepCase: true });
  root.resolveAll();
  const { file: all } = (
    root as unknown as { toDescriptor(edition: string): { file: DescriptorFile[] } }
  ).toDescriptor("proto3");
  const packages = new Map(all.map((file) => [file.package, file.name]));
  for (const file of all) file.dependency = complete(root, file, packages);
  const files = new Map(all.map((file) => [file.name, file]));
  // What services need, what they import first.
  const chosen: DescriptorFile[] = [];
  const choose = (file: DescriptorFile): void => {
    if (chosen.includes(file)) return;
    for (const name of file.dependency) choose(defined(files.get(name), "the file"));
    chosen.push(file);
  };
  for (const file of files.values()) if (file.service.length > 0) choose(file);
  const encoded = chosen.map((file) => {
    const bytes = Buffer.from(FileDescriptorProto.encode(file as never).finish());
    return [file.name, bytes.toString("base64")];
  });
  return `${JSON.stringify(Object.fromEntries(encoded))}\n`;
}

/**
 * Sets the full names of all types of a file; returns the files that it imports. @param packages
 * file names by package
 */
function complete(
  root: protobufjs.Root,
  file: DescriptorFile,
  packages: ReadonlyMap<string, string>,
): string[] {
  const imports = new Set<string>();
  const fullName = (name: string, scope: string): string => {
    const found =
      (root.lookup(scope) as protobufjs.Namespace | null)?.lookup(name) ?? root.lookup(name);
    if (found === null || found === undefined)
      throw new Error(`${file.name}: no type ${name} in ${scope}`);
    const home = defined(
      [...packages].find(([name]) => found.fullName.startsWith(`.${name}.`)),
      "the package",
    )[1];
    if (home !== file.name) imports.add(home);
    return found.fullName;
  };
  const visit = (message: DescriptorMessage, scope: string): void => {
    const path = `${scope}.${message.name}`;
    for (const field of message.field)
      if (field.typeName) field.typeName = fullName(field.typeName, path);
    for (const nested of message.nestedType) visit(nested, path);
  };
  for (const message of file.messageType) visit(message, file.package);
  for (const { method } of file.service) {
    for (const one of method) {
      one.inputType = fullName(one.inputType, file.package);
      one.outputType = fullName(one.outputType, file.package);
      // Reflection needs no HTTP paths, and their option would need its file.
      delete one.options;
    }
  }
  return [...imports].sort();
}
