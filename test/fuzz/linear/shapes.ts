/**
 * The requests that are spoilt: for each port its paths with their queries, headers and bodies.
 * A body is a tree of values; how it is written (JSON, YAML, protobuf, a form) is the shape's.
 */
import protobuf from "protobufjs";
import { protoRoot } from "../messages.ts";

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON
export type Tree = any;

/** How a body is written. */
export type BodyType = "none" | "json" | "yaml" | "form" | "text" | "protobuf" | "grpc";

export interface Shape {
  /** The port's name in reports. */
  readonly port: string;
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyType: BodyType;
  readonly body?: Tree;
  /** Of a protobuf or gRPC body. */
  readonly typeName?: string;
  /** Every header of HEADERS is tried on it. */
  readonly heads?: true;
}

/**
 * Header names that some part of the system, or a proxy before it, reads; and some that none does.
 */
export const HEADERS: readonly string[] = [
  ..."host connection content-type content-length content-encoding content-language".split(" "),
  ..."accept accept-encoding accept-language accept-charset authorization cookie origin".split(" "),
  ..."referer upgrade expect te trailer transfer-encoding if-match if-none-match".split(" "),
  ..."if-modified-since if-range range last-event-id user-agent forwarded via warning".split(" "),
  ..."x-forwarded-for x-forwarded-proto x-forwarded-host x-real-ip keep-alive date".split(" "),
  ..."sec-fetch-site sec-fetch-mode sec-fetch-dest sec-websocket-key http2-settings".split(" "),
  ..."sec-websocket-version sec-websocket-protocol sec-websocket-extensions pragma".split(" "),
  ..."access-control-request-method access-control-request-headers cache-control".split(" "),
  ..."grpc-timeout grpc-encoding grpc-accept-encoding grpc-metadata-token token".split(" "),
  ..."grpc-metadata-x grpc-metadata-x-bin grpc-trace-bin grpc-tags-bin x-bin grpc-status".split(
    " ",
  ),
  ..."grpc-message grpc-previous-rpc-attempts hasleader rp-client-api-version".split(" "),
  ..."client-api-version traceparent tracestate baggage x-request-id audit-id".split(" "),
  ..."x-etcd-cluster-id x-raft-to x-server-from x-server-version x-peerurls".split(" "),
  ..."x-quorate-protocol x-quorate-cluster-id x-quorate-from x-quorate-to".split(" "),
  ..."x-quorate-server-version x-quorate-min-cluster-version x-quorate-peer-urls".split(" "),
  ..."x-min-cluster-version quorate-lease priority".split(" "),
  ..."impersonate-user impersonate-uid impersonate-group impersonate-extra-a%2fb".split(" "),
  ..."x-remote-user x-remote-group x-stream-protocol-version proxy-authorization".split(" "),
  ..."kubectl-command kubectl-session x-http-method-override x-unknown-header".split(" "),
];

const NONE = { query: {}, headers: {}, bodyType: "none" } as const;

/** A request without a query, headers and a body, but for `more`. */
export function plain(
  port: string,
  method: string,
  path: string,
  more: Partial<Shape> = {},
): Shape {
  return { port, method, path, name: `${method} ${path}`, ...NONE, ...more };
}

// --- A member's and the proxy's client port ---

/** Calls that would make the cluster another one, or hand over its state. */
const LEFT_OUT = new Set(["AuthEnable", "AuthDisable", "Defragment", "Snapshot", "MoveLeader"]);
const MAX_DEPTH = 2;

/** A value for each field of a message type. */
function treeOf(type: protobuf.Type, depth = 0): Tree {
  const tree: Record<string, Tree> = {};
  for (const field of type.fieldsArray) {
    field.resolve();
    // One of a union: the first.
    if (field.partOf !== null && field.partOf.fieldsArray[0] !== field && depth > 0) continue;
    const { resolvedType } = field;
    let value: Tree;
    if (resolvedType instanceof protobuf.Type) {
      if (depth >= MAX_DEPTH) continue;
      value = treeOf(resolvedType, depth + 1);
    } else if (resolvedType instanceof protobuf.Enum) value = 0;
    else if (field.type === "string") value = "text";
    else if (field.type === "bytes") value = "dGV4dA==";
    else if (field.type === "bool") value = false;
    else value = 0;
    if (field.map) continue;
    tree[field.name] = field.repeated ? [value] : value;
  }
  return tree;
}

function* methodsOf(root: protobuf.NamespaceBase): Generator<[protobuf.Service, protobuf.Method]> {
  for (const nested of root.nestedArray) {
    if (nested instanceof protobuf.Service)
      for (const method of nested.methodsArray) yield [nested, method.resolve() as protobuf.Method];
    else if (nested instanceof protobuf.Namespace) yield* methodsOf(nested);
  }
}

/** Every method of every service: over gRPC, and by JSON where it has a path. */
function rpcShapes(port: string, headers: Readonly<Record<string, string>>): Shape[] {
  return [...methodsOf(protoRoot)].flatMap(([service, method]) => {
    if (LEFT_OUT.has(method.name) || method.resolvedRequestType === null) return [];
    const type = method.resolvedRequestType;
    const body = treeOf(type);
    const path = `/${service.fullName.slice(1)}/${method.name}`;
    const grpc = { "content-type": "application/grpc", te: "trailers", ...headers };
    const common = { body, typeName: type.fullName.slice(1) };
    const shapes = [plain(port, "POST", path, { headers: grpc, bodyType: "grpc", ...common })];
    const gateway = method.options?.["(google.api.http).post"] as string | undefined;
    if (gateway !== undefined) {
      const json = { "content-type": "application/json", ...headers };
      shapes.push(plain(port, "POST", gateway, { headers: json, bodyType: "json", ...common }));
    }
    return shapes;
  });
}

/** @param headers what makes the caller root; empty for one without an identity */
export function memberShapes(port: string, headers: Readonly<Record<string, string>>): Shape[] {
  const form = { "content-type": "application/x-www-form-urlencoded", ...headers };
  const v2Query = {
    recursive: "true",
    sorted: "true",
    quorum: "false",
    wait: "false",
    waitIndex: "1",
    stream: "false",
    prevExist: "true",
    prevValue: "a",
    prevIndex: "1",
    ttl: "10",
    dir: "false",
    refresh: "false",
    noValueOnSuccess: "true",
    value: "a",
  };
  const socket = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-protocol": "Bearer, abc",
  };
  return [
    plain(port, "GET", "/health", {
      headers,
      query: { exclude: "NOSPACE", serializable: "true" },
      heads: true,
    }),
    plain(port, "GET", "/readyz/data_corruption", {
      headers,
      query: { verbose: "", exclude: "a" },
    }),
    plain(port, "GET", "/version", { headers }),
    plain(port, "GET", "/metrics", { headers }),
    plain(port, "GET", "/debug/vars", { headers }),
    plain(port, "GET", "/openapi.json", { headers }),
    plain(port, "OPTIONS", "/v3/kv/range", { headers }),
    plain(port, "GET", "/v3/watch", {
      headers: { ...headers, ...socket },
      query: { method: "POST", token: "a" },
      heads: true,
    }),
    plain(port, "POST", "/v3/kv/range", {
      headers: { "content-type": "application/json", ...headers },
      bodyType: "json",
      body: { key: "YQ==" },
      heads: true,
      query: { pretty: "true" },
    }),
    plain(port, "POST", "/etcdserverpb.KV/Range", {
      headers: { "content-type": "application/grpc", te: "trailers", ...headers },
      bodyType: "grpc",
      typeName: "etcdserverpb.RangeRequest",
      body: { key: "YQ==" },
      heads: true,
    }),
    plain(port, "GET", "/kv/app/greeting", {
      headers,
      heads: true,
      query: { rev: "1", serializable: "", type: "text/plain" },
    }),
    plain(port, "GET", "/kv/app/", {
      headers,
      query: {
        prefix: "",
        limit: "2",
        after: "a",
        keys: "",
        rev: "1",
        format: "json",
        order: "asc",
        end: "b",
      },
    }),
    plain(port, "PUT", "/kv/app/greeting", {
      headers: { "if-match": '"1"', "quorate-lease": "1", ...headers },
      bodyType: "text",
      body: "hello",
      heads: true,
      query: { lease: "1", ttl: "10" },
    }),
    plain(port, "DELETE", "/kv/app/greeting", {
      headers: { "if-match": '"1"', ...headers },
      query: { prefix: "" },
    }),
    plain(port, "GET", "/watch/app/", { headers, query: { prefix: "", rev: "1", format: "sse" } }),
    plain(port, "POST", "/txn", {
      headers: { "content-type": "application/json", ...headers },
      bodyType: "json",
      body: {
        if: [{ key: "a", version: 0, value: "b", revision: 1, lease: 1 }],
        // biome-ignore lint/suspicious/noThenProperty: the name of a field of /txn
        then: [{ put: "a", value: "b", lease: 1 }, { get: "a" }, { delete: "a", prefix: true }],
        else: [{ get: "a", base64: true }],
      },
    }),
    plain(port, "GET", "/v2/keys/a/b", { headers, query: v2Query, heads: true }),
    plain(port, "PUT", "/v2/keys/a/b", {
      headers: form,
      query: v2Query,
      bodyType: "form",
      body: v2Query,
    }),
    plain(port, "POST", "/v2/keys/a", {
      headers: form,
      bodyType: "form",
      body: { value: "a", ttl: "1" },
    }),
    plain(port, "DELETE", "/v2/keys/a/b", { headers, query: v2Query }),
    plain(port, "GET", "/v2/members/8e9e05c52164694d", { headers }),
    plain(port, "POST", "/v2/members", {
      headers: { "content-type": "application/json", ...headers },
      bodyType: "json",
      body: { peerURLs: ["x"], name: "a", id: "b", clientURLs: ["x"] },
    }),
    plain(port, "GET", "/v2/stats/self", { headers }),
    ...rpcShapes(port, headers),
  ];
}

export function metricsShapes(port: string): Shape[] {
  return [
    plain(port, "GET", "/metrics", { heads: true, query: { name: "a", "name[]": "b" } }),
    plain(port, "GET", "/health", { query: { exclude: "NOSPACE", serializable: "true" } }),
    plain(port, "GET", "/livez", { query: { verbose: "", exclude: "a" } }),
    plain(port, "GET", "/readyz/ping"),
  ];
}

export function peerShapes(port: string, headers: Readonly<Record<string, string>>): Shape[] {
  const text = { bodyType: "text", body: "text", headers } as const;
  const lease = (typeName: string): Partial<Shape> => ({
    bodyType: "protobuf",
    typeName,
    body: treeOf(protoRoot.lookupType(typeName)),
    headers,
  });
  return [
    plain(port, "GET", "/members", { headers, heads: true }),
    plain(port, "GET", "/version", { headers }),
    plain(port, "POST", "/raft/stream/urgent", { ...text, heads: true }),
    plain(port, "GET", "/raft/stream/bulk", {
      headers: { ...headers, connection: "Upgrade", upgrade: "quorate" },
      heads: true,
    }),
    plain(port, "POST", "/raft/snapshot", { ...text, heads: true }),
    plain(port, "POST", "/raft/snapshot/fetch", text),
    plain(port, "POST", "/raft", text),
    plain(port, "GET", "/raft/stream/message/8e9e05c52164694d", { headers }),
    plain(port, "POST", "/leases", lease("etcdserverpb.LeaseKeepAliveRequest")),
    plain(port, "POST", "/leases/internal", lease("leasepb.LeaseInternalRequest")),
    plain(port, "GET", "/members/hashkv", { headers, bodyType: "json", body: { revision: 1 } }),
    plain(port, "POST", "/members/promote/1", text),
    plain(port, "POST", "/members/store-to/1", text),
    plain(port, "GET", "/quorate/features", { headers }),
    plain(port, "GET", "/downgrade/enabled", { headers }),
  ];
}
