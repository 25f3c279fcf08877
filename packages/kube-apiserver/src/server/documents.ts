/** Sends documents that are no objects of a resource: discovery, versions, paths. */
import { crc32c, fromUtf8 } from "@quorate/proto";
import { BodySink } from "../handlers/body-sink.ts";
import type { Call } from "../handlers/call.ts";
import { encodePlain } from "../handlers/encode.ts";
import { mediaTypeOf, negotiate, type Offer } from "../handlers/negotiation.ts";
import { negotiated, type SendDeps } from "../handlers/send-object.ts";
import type { Discovery } from "./discovery.ts";

type Document = Readonly<Record<string, unknown>>;

const PLAIN: Offer = { encodings: ["json", "yaml"], allows: () => false };
const DISCOVERY_GROUP = "apidiscovery.k8s.io";
const DISCOVERY_KIND = "APIGroupDiscoveryList";
const AGGREGATED: Offer = {
  encodings: ["json"],
  allows: ({ group, version, kind }) =>
    group === DISCOVERY_GROUP &&
    kind === DISCOVERY_KIND &&
    (version === "v2" || version === "v2beta1"),
};

/** Sends a document in the form that the client accepts. Rejects with ApiError 406. */
export async function sendDocument(call: Call, deps: SendDeps, document: Document): Promise<void> {
  const { encoding, pretty } = negotiated(call, PLAIN);
  const sink = new BodySink(call, 200, mediaTypeOf(encoding), deps.newCompressor);
  sink.add(await encodePlain(document, encoding, pretty));
  await sink.end();
}

/** Serves /api and /apis: one document with everything for clients that ask for it. */
export async function serveRoot(
  call: Call,
  deps: SendDeps,
  discovery: Discovery,
  isLegacy: boolean,
): Promise<void> {
  const version = wantedAggregate(call.header("accept"));
  if (version === undefined) {
    const document = isLegacy
      ? discovery.legacyVersions(call.header("host"))
      : discovery.groupList();
    call.setHeader("vary", "Accept");
    return sendDocument(call, deps, document);
  }
  const bytes = fromUtf8(`${JSON.stringify(discovery.aggregated(isLegacy, version))}\n`);
  const etag = `"${crc32c(0, bytes).toString(16).toUpperCase()}-${bytes.length}"`;
  call.setHeader("etag", etag);
  call.setHeader("vary", "Accept");
  call.setHeader("cache-control", "public");
  if (call.header("if-none-match") === etag) {
    call.respond(304, {}, "");
    return;
  }
  const type = `application/json;g=${DISCOVERY_GROUP};v=${version};as=${DISCOVERY_KIND}`;
  const sink = new BodySink(call, 200, type, deps.newCompressor);
  sink.add(bytes);
  await sink.end();
}

/** The version of the aggregated document that the client prefers to the plain one. */
function wantedAggregate(accept: string): string | undefined {
  try {
    return negotiate(accept, AGGREGATED).target?.version;
  } catch {
    return undefined;
  }
}
