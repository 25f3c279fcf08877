/** Bodies of requests as objects (apiserver: handlers/create.go, rest.go transformDecodeError). */
import type { Clock } from "@quorate/host";
import type {
  DecodedObject,
  GroupVersionKind,
  KubeObject,
  ServedResource,
} from "@quorate/kube-storage";
import {
  ApiError,
  apiVersionOf,
  badRequest,
  kubeObjectOf,
  metaProtobuf,
  parseApiVersion,
  parseJsonInSlices,
  parseYaml,
  type StatedKind,
  statedKind,
} from "@quorate/kube-storage";
import { defined, toHex, toUtf8 } from "@quorate/proto";
import type { Call } from "./call.ts";
import { bodyEncoding, encodingsOf } from "./negotiation.ts";

/** The parser of YAML takes up to 0.1 ms for each KiB, so longer texts are refused. */
export const MAX_YAML_BYTES = 256 * 1024;
const SUMMARY_BYTES = 30;

/**
 * A value of JSON or YAML, with its duplicate fields; those of JSON are known to the decoders of
 * kinds (duplicatesIn). Rejects with Error.
 */
export async function parseText(
  bytes: Uint8Array,
  encoding: "json" | "yaml",
  clock: Clock,
): Promise<{ value: unknown; duplicates: readonly string[] }> {
  // Clients of apply send JSON under the media type of YAML, of which it is a part.
  if (encoding === "json" || bytes[0] === 0x7b)
    return { value: await parseJsonInSlices(toUtf8(bytes), clock), duplicates: [] };
  if (bytes.length > MAX_YAML_BYTES)
    throw new ApiError(
      413,
      "RequestEntityTooLarge",
      `Request entity too large: limit of YAML is ${MAX_YAML_BYTES}; JSON may be longer`,
    );
  return parseYaml(toUtf8(bytes));
}

/** What a client sent, and what is wrong with its fields. */
export interface ReadObject extends DecodedObject {
  /** The group and version that the object names, or else the endpoint's. */
  readonly apiVersion: string;
  /** Of the body. */
  readonly sizeBytes: number;
}

/**
 * Decodes an object of the resource's kind; what the client left out (kind, apiVersion) is filled
 * in. Throws ApiError 400 and 415.
 */
export async function readObject(
  call: Call,
  resource: ServedResource,
  clock: Clock,
): Promise<ReadObject> {
  const encoding = bodyEncoding(call.header("content-type"), encodingsOf(resource));
  const bytes = await call.body();
  if (encoding === "protobuf") return readProtobuf(bytes, resource);
  let parsed: Awaited<ReturnType<typeof parseText>>;
  try {
    parsed = await parseText(bytes, encoding, clock);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    const parser = encoding === "json" ? "json parse error: " : "";
    const why = `couldn't get version/kind; ${parser}${(error as Error).message}`;
    throw unrecognized(resource.kind, why, bytes);
  }
  const object = withKind(parsed.value, resource.kind, bytes);
  const decoded = decodedBy(resource, object);
  // Kinds without metadata are options of connections to nodes.
  const { metadata = {} } = decoded.object as Partial<KubeObject>;
  return {
    object: decoded.object.metadata === metadata ? decoded.object : { ...decoded.object, metadata },
    strictErrors: [...parsed.duplicates, ...decoded.strictErrors],
    apiVersion: object.apiVersion,
    sizeBytes: bytes.length,
  };
}

/** Checks that the value is an object of the kind. */
export function withKind(value: unknown, kind: GroupVersionKind, bytes: Uint8Array): KubeObject {
  let stated: StatedKind;
  try {
    stated = statedKind(value);
  } catch (error) {
    const why = `couldn't get version/kind; json parse error: ${(error as Error).message}`;
    throw unrecognized(kind, why, bytes);
  }
  const fields = (value ?? {}) as Record<string, unknown>;
  const { kind: sentKind, apiVersion: sentVersion } = stated;
  const apiVersion = sentVersion === "" ? apiVersionOf(kind) : sentVersion;
  const parsed = parseApiVersion(apiVersion);
  if (parsed === undefined)
    throw badRequest(`couldn't parse version: unexpected GroupVersion string: ${apiVersion}`);
  const name = sentKind === "" ? kind.kind : sentKind;
  if (parsed.group !== kind.group || parsed.version !== kind.version)
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${apiVersionOf(kind)})`,
    );
  if (name !== kind.kind)
    throw badRequest(
      `${name} in version "${parsed.version}" cannot be handled as a ${kind.kind}: no kind ` +
        `${JSON.stringify(name)} is registered for version ${JSON.stringify(apiVersion)}`,
    );
  // In place: a copy would lose the duplicate fields that the parser has found.
  const head = { apiVersion, kind: name, metadata: fields["metadata"] ?? {} };
  return kubeObjectOf(Object.assign(fields, head));
}

/** The resource's decoder, whose errors name the kind. */
function decodedBy(resource: ServedResource, object: KubeObject): DecodedObject {
  try {
    return resource.decode(object);
  } catch (error) {
    if (error instanceof ApiError || !(error instanceof Error)) throw error;
    const { kind, version } = resource.kind;
    const message = `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${error.message}`;
    throw badRequest(message);
  }
}

function readProtobuf(bytes: Uint8Array, resource: ServedResource): ReadObject {
  let object: KubeObject;
  try {
    const { apiVersion, kind, message } = metaProtobuf.unwrap(bytes);
    const named = withKind({ apiVersion, kind }, resource.kind, bytes);
    const decoded = defined(resource.protobuf, "the protobuf").decode(message);
    const { metadata = {} } = decoded;
    object = { ...decoded, apiVersion: named.apiVersion, kind: named.kind, metadata };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw unrecognized(resource.kind, (error as Error).message, bytes);
  }
  return {
    ...decodedBy(resource, object),
    apiVersion: object.apiVersion,
    sizeBytes: bytes.length,
  };
}

/** A body that is no object. */
export function unrecognized(kind: GroupVersionKind, why: string, bytes: Uint8Array): ApiError {
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind.kind}): ${why} (${summaryOf(bytes)})`,
  );
}

/** The beginning of a body (apiserver: summarizeData). */
function summaryOf(bytes: Uint8Array): string {
  if (bytes.length === 0) return "<empty>";
  const head = bytes.subarray(0, SUMMARY_BYTES);
  const text = bytes[0] === 0x7b ? toUtf8(head) : toHex(head);
  return bytes.length > SUMMARY_BYTES ? `${text} ...` : text;
}
