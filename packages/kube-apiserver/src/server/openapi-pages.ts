/**
 * /openapi/v2 and /openapi/v3 (kube-openapi: pkg/handler, pkg/handler3).
 *
 *     /openapi/v2                       all resources, as JSON or as protobuf
 *     /openapi/v3                       where the documents of groups are
 *     /openapi/v3/apis/GROUP/VERSION    one of them; with its ?hash= it never changes
 */

import { notAcceptable } from "@quorate/kube-storage";
import { acceptsGzip, BodySink } from "../handlers/body-sink.ts";
import type { Call } from "../handlers/call.ts";
import type { SendDeps } from "../handlers/send-object.ts";
import type { OpenApiDocuments, OpenApiPage } from "../openapi/openapi-documents.ts";
import type { Page } from "./routes.ts";

const JSON_TYPE = "application/json";
const V2_PROTOBUF_SENT = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/** Both forms of the name are asked for. */
const V2_PROTOBUF = /application\/com\.github\.proto-openapi\.spec\.v2[@.]v1\.0\+protobuf/;
const V3_PATH = "/openapi/v3/";
const YEAR_SECONDS = 365 * 24 * 3600;
const NOT_FOUND = { "content-type": "text/plain; charset=utf-8" };

export function openApiPages(
  documents: OpenApiDocuments,
  deps: SendDeps,
): ReadonlyMap<string, Page> {
  const v2: Page = async (call) => {
    const accept = call.header("accept");
    if (V2_PROTOBUF.test(accept))
      return send(call, deps, await documents.v2("protobuf"), V2_PROTOBUF_SENT);
    if (!takesJson(accept)) throw notAcceptable([JSON_TYPE, V2_PROTOBUF_SENT]);
    await send(call, deps, await documents.v2("json"), JSON_TYPE);
  };
  const index: Page = async (call) => send(call, deps, await documents.index(), JSON_TYPE);
  const v3: Page = async (call) => {
    const path = call.target.path.slice(V3_PATH.length);
    const page = await documents.v3(path);
    if (page === undefined) {
      call.respond(404, NOT_FOUND, "");
      return;
    }
    if (!takesJson(call.header("accept"))) throw notAcceptable([JSON_TYPE]);
    const wanted = call.query.first("hash");
    if (wanted !== "" && wanted !== page.hash) {
      const location = `${V3_PATH}${path}?hash=${page.hash}`;
      call.respond(301, { ...NOT_FOUND, location }, "Moved Permanently\n");
      return;
    }
    if (wanted !== "")
      call.setHeader("cache-control", `public, immutable, max-age=${YEAR_SECONDS}`);
    await send(call, deps, page, JSON_TYPE);
  };
  return new Map([
    ["/openapi/v2", v2],
    ["/openapi/v3", index],
    [V3_PATH, v3],
  ]);
}

function takesJson(accept: string): boolean {
  return accept === "" || /application\/(?:json|\*)|\*\/\*/.test(accept);
}

async function send(
  call: Call,
  deps: SendDeps,
  { bytes, hash }: OpenApiPage,
  type: string,
): Promise<void> {
  const etag = `"${hash}"`;
  call.setHeader("etag", etag);
  call.setHeader(
    "vary",
    acceptsGzip(call.header("accept-encoding")) ? "Accept, Accept-Encoding" : "Accept",
  );
  if (call.header("if-none-match") === etag) {
    call.respond(304, {}, "");
    return;
  }
  const sink = new BodySink(call, 200, type, deps.newCompressor);
  sink.add(bytes);
  await sink.end();
}
