/** What is generated from proto/ as documents: for users of the gateway, and for reflection. */
import descriptors from "./gen/descriptors.json" with { type: "json" };
import openApi from "./gen/openapi.json" with { type: "json" };
import { defined } from "./invariant.ts";
import { fromBase64 } from "./wire/bytes.ts";

/** The OpenAPI 3.1 document of etcd's gateway, as JSON without spaces. */
export function openApiDocument(): string {
  return JSON.stringify(openApi);
}

/** The services' files as FileDescriptorProtos, each behind those that it imports. */
export function fileDescriptors(): readonly Uint8Array[] {
  return Object.values(descriptors).map((text) => defined(fromBase64(text), "base64"));
}
