/** One object, or an error, as the bytes of a response, in the form that the client accepts. */
import type { Clock } from "@quorate/host";
import {
  type ApiError,
  apiVersionOf,
  type KubeObject,
  kubeObjectOf,
  metaProtobuf,
  notAcceptable,
  type ServedResource,
  type Status,
  writeYaml,
} from "@quorate/kube-storage";
import { defined, fromUtf8 } from "@quorate/proto";
import { BodySink, type Compressor } from "./body-sink.ts";
import type { Call } from "./call.ts";
import {
  type Encoding,
  includeObjectOf,
  mediaTypeOf,
  type Negotiated,
  negotiate,
  type Offer,
  partialMetadata,
  tableOf,
  tableRow,
  wantsPretty,
} from "./negotiation.ts";
import { notConvertible } from "./statuses.ts";

/** What responses need of the platform. */
export interface SendDeps {
  readonly clock: Clock;
  readonly newCompressor: () => Compressor;
}

/** The form of a response. Throws ApiError 406. */
export function negotiated(call: Call, offer: Offer): Negotiated {
  const found = negotiate(call.header("accept"), offer);
  const pretty = found.pretty || wantsPretty(call.query.first("pretty"), call.userAgent);
  return { ...found, pretty };
}

/** An object, in the forms that exist; each is made when it is wanted. */
interface Sent {
  object(): KubeObject | Status;
  json?(): Uint8Array;
}

const LINE_FEED = fromUtf8("\n");

/** Sends an object of a resource in the negotiated form. */
export async function sendObject(
  call: Call,
  deps: SendDeps,
  resource: ServedResource,
  form: Negotiated,
  status: number,
  sent: Sent,
): Promise<void> {
  const { encoding, pretty } = form;
  const sink = new BodySink(call, status, mediaTypeOf(encoding), deps.newCompressor);
  if (call.audit !== undefined) {
    const object = sent.object();
    if (isStatus(object)) call.audit.status(object as Status);
    if (call.audit.wants("RequestResponse"))
      call.audit.response(transformed(call, deps, resource, form, object));
  }
  if (encoding === "json" && !pretty && form.target === undefined && sent.json !== undefined) {
    sink.add(sent.json());
    sink.add(LINE_FEED);
  } else {
    const value = transformed(call, deps, resource, form, sent.object());
    const isProtobuf = encoding === "protobuf";
    sink.add(isProtobuf ? envelopeOf(value, resource) : await encodePlain(value, encoding, pretty));
  }
  await sink.end();
}

function transformed(
  call: Call,
  { clock }: SendDeps,
  resource: ServedResource,
  { target }: Negotiated,
  object: KubeObject | Status,
): KubeObject {
  if (target === undefined || isStatus(object)) return object as KubeObject;
  const one = object as KubeObject;
  if (target.kind === "PartialObjectMetadata") return partialMetadata(one, target);
  if (target.kind === "PartialObjectMetadataList")
    throw notConvertible(
      `you requested PartialObjectMetadataList, but the requested object is not a list (${one.kind})`,
    );
  const include = includeObjectOf(call.query.first("includeObject"));
  const table = defined(resource.table, "the table");
  const row = tableRow(one, table, target, include, clock.wallMs());
  const { resourceVersion } = one.metadata;
  const { columns } = table;
  const metadata = resourceVersion ? { resourceVersion } : {};
  return kubeObjectOf(tableOf(target, metadata, columns, [row]));
}

const STATUS_OFFER: Offer = { encodings: ["json", "yaml", "protobuf"], allows: () => false };

/** Sends an error as Status; a second response to a request is dropped. */
export async function sendError(call: Call, error: ApiError): Promise<void> {
  const { status } = error;
  call.audit?.status(status);
  call.audit?.response(status);
  const seconds = status.details?.retryAfterSeconds;
  if (seconds !== undefined && seconds > 0) call.setHeader("retry-after", String(seconds));
  let form: Negotiated = { encoding: "json", target: undefined, pretty: false };
  try {
    form = negotiated(call, STATUS_OFFER);
  } catch {
    // A client that accepts no form of a Status gets JSON.
  }
  const headers = { "content-type": mediaTypeOf(form.encoding) };
  if (form.encoding === "json")
    call.respond(error.httpStatus, headers, jsonText(status, form.pretty));
  else if (form.encoding === "protobuf") {
    call.respond(error.httpStatus, headers, envelopeOf(kubeObjectOf(status), undefined));
  } else {
    const text = await encodePlain(status, form.encoding, form.pretty);
    call.respond(error.httpStatus, headers, text);
  }
}

/** The apiVersion of a resource's lists and objects. */
export function versionOf(resource: ServedResource): string {
  return apiVersionOf(resource);
}

/** The message of a value, without envelope. Throws ApiError 406 where it has no protobuf form. */
export function messageOf(value: KubeObject, resource: ServedResource | undefined): Uint8Array {
  if (isStatus(value)) return metaProtobuf.encode("Status", value);
  const isPartial = value.kind === "PartialObjectMetadata";
  if (isPartial && value.apiVersion.startsWith("meta.k8s.io/"))
    return metaProtobuf.encode("PartialObjectMetadata", value);
  if (resource?.protobuf !== undefined) return resource.protobuf.encode(value);
  throw notAcceptable(["application/json", "application/yaml"]);
}

/** The same in its envelope. */
export function envelopeOf(value: KubeObject, resource: ServedResource | undefined): Uint8Array {
  return metaProtobuf.wrap(value.apiVersion, value.kind, messageOf(value, resource));
}

/** JSON as Kubernetes ends it: with a line feed. */
export function jsonText(value: unknown, pretty: boolean): string {
  return `${JSON.stringify(value, undefined, pretty ? 2 : undefined)}\n`;
}

/** A value without protobuf form as JSON or YAML; protobuf becomes JSON. */
export async function encodePlain(
  value: unknown,
  encoding: Encoding,
  pretty: boolean,
): Promise<Uint8Array> {
  return fromUtf8(encoding === "yaml" ? await writeYaml(value) : jsonText(value, pretty));
}

/** Whether a value is metav1.Status. */
function isStatus(value: KubeObject | { readonly kind: string }): boolean {
  return value.kind === "Status" && (value as { apiVersion?: string }).apiVersion === "v1";
}
