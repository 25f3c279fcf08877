/** Requests before the random ones: data, leases, users and roles, streams, and what is odd. */
import type { GatewayRequest } from "./request.ts";

function post(path: string, body: string, headers: Record<string, string> = {}): GatewayRequest {
  return { method: "POST", path: `/v3/${path}`, headers, body };
}

function base64(text: string): string {
  return Buffer.from(text, "latin1").toString("base64");
}

function kv(key: string, value?: string): string {
  const fields = { key: base64(key), ...(value === undefined ? {} : { value: base64(value) }) };
  return JSON.stringify(fields);
}

const ROOT = { authorization: "{token:root}" };
const USER = { authorization: "{token:u}" };
const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** The requests. */
export function script(): GatewayRequest[] {
  return [...data(), ...streams(), ...users(), ...odd()];
}

function data(): GatewayRequest[] {
  const txn = {
    compare: [{ key: base64("a"), target: "VALUE", value: base64("1"), result: "EQUAL" }],
    success: [
      { requestRange: { key: base64("a"), rangeEnd: base64("c") } },
      { request_put: { key: base64("b"), value: base64("2"), prev_kv: true } },
      { request_delete_range: { key: base64("c"), prevKv: true } },
      { request_txn: { success: [{ request_range: { key: base64("b") } }] } },
    ],
  };
  return [
    post("lease/grant", '{"TTL":"3600","ID":"77"}'),
    post("lease/grant", '{"TTL":3600,"ID":78}'),
    post("lease/grant", '{"TTL":3600,"ID":78}'),
    post("kv/put", kv("a", "1")),
    post("kv/put", kv("b", "\0\xff\xfe"), FORM),
    post("kv/put", JSON.stringify({ key: base64("c"), value: base64("x"), lease: "77" })),
    post("kv/range", JSON.stringify({ key: base64("a"), range_end: base64("z") })),
    post("kv/txn", JSON.stringify(txn)),
    post("kv/txn", JSON.stringify({ ...txn, compare: [] })),
    post("kv/deleterange", JSON.stringify({ key: base64("b"), prevKv: true })),
    post("kv/put", kv("", "1")),
    post("kv/lease/timetolive", '{"ID":"77","keys":true}'),
    post("lease/leases", "{}"),
    post("kv/lease/leases", "{}"),
    post("cluster/member/list", "{}"),
    post("maintenance/status", "{}"),
    post("maintenance/hashkv", "{}"),
    post("kv/compaction", '{"revision":3,"physical":true}'),
    post("kv/range", JSON.stringify({ key: base64("a"), revision: 2 })),
  ];
}

function streams(): GatewayRequest[] {
  const watch = JSON.stringify({ create_request: { key: base64("a"), start_revision: "4" } });
  const all = { key: base64("\0"), rangeEnd: base64("\0"), startRevision: 4, prevKv: true };
  return [
    post("watch", watch),
    post("watch", JSON.stringify({ createRequest: { ...all, watch_id: 5 } })),
    post("watch", JSON.stringify({ create_request: { ...all, startRevision: 1 } })),
    post("watch", `${watch}{"cancel_request":{"watch_id":0}} {"progress_request":{}}`),
    post("lease/keepalive", '{"ID":77}{"ID":"78"}\n{"ID":5}'),
    post("lease/keepalive", ""),
    post("maintenance/snapshot", "{}"),
    post("lock/lock", '{"name":"bA==","lease":77}'),
    post("lock/unlock", '{"key":"bC83Nw=="}'),
    post("election/campaign", '{"name":"ZQ==","lease":77,"value":"MQ=="}'),
    post("election/leader", '{"name":"ZQ=="}'),
    post("election/observe", '{"name":"ZQ=="}'),
    post("election/leader", '{"name":"eA=="}'),
  ];
}

function users(): GatewayRequest[] {
  const permission = { permType: "READWRITE", key: base64("a"), range_end: base64("b") };
  return [
    post("auth/status", "{}"),
    post("auth/enable", "{}"),
    post("auth/user/add", '{"name":"root","password":"p"}'),
    post("auth/user/add", '{"name":"u","password":"<&>"}'),
    post("auth/user/add", '{"name":"u"}'),
    post("auth/role/add", '{"name":"root"}'),
    post("auth/role/add", '{"name":"r"}'),
    post("auth/role/grant", JSON.stringify({ name: "r", perm: permission })),
    post("auth/user/grant", '{"user":"root","role":"root"}'),
    post("auth/user/grant", '{"user":"u","role":"r"}'),
    post("auth/user/get", '{"name":"u"}'),
    post("auth/role/get", '{"role":"r"}'),
    post("auth/enable", ""),
    post("kv/range", kv("a")),
    post("auth/authenticate", '{"name":"root","password":"x"}'),
    post("auth/authenticate", '{"name":"root","password":"p"}'),
    post("auth/authenticate", '{"name":"u","password":"<&>"}'),
    post("kv/range", kv("a"), USER),
    post("kv/range", kv("c"), USER),
    post("kv/range", kv("a"), { authorization: "no.1" }),
    post("kv/range", kv("a"), { "grpc-metadata-token": "{token:u}" }),
    post("kv/range", kv("a"), { authorization: "Bearer {token:u}" }),
    post("auth/user/list", "{}", USER),
    post("auth/user/list", "{}", ROOT),
    post("watch", JSON.stringify({ create_request: { key: base64("c") } }), USER),
    post("maintenance/snapshot", "{}", USER),
    post("auth/disable", "{}", USER),
    post("auth/disable", "{}", ROOT),
    post("auth/status", "{}"),
  ];
}

function odd(): GatewayRequest[] {
  const range = kv("a");
  return [
    { method: "GET", path: "/v3", headers: {}, body: "" },
    { method: "GET", path: "/v3//kv/range?x=<'\"", headers: {}, body: "" },
    { method: "POST", path: "/v3alpha/kv/range", headers: {}, body: range },
    { method: "POST", path: "/v3beta/kv/range", headers: {}, body: range },
    post("kv/range", ""),
    post("kv/range", " \n"),
    post("kv/range", `${range} trailing`),
    post("kv/range", range.slice(0, -1)),
    post("kv/range", range, { te: "trailers" }),
    post("kv/range", "{}", { te: "trailers" }),
    post("kv/put", JSON.stringify({ key: base64("a"), value: "A".repeat(2_100_000) })),
    post("kv/put", JSON.stringify({ key: base64("a"), value: "A".repeat(2_900_000) })),
    post("kv/range", `${"[".repeat(10_001)}`),
    post("kv/range", `{"x":${"[".repeat(9990)}${"]".repeat(9990)},"key":"YQ=="}`),
  ];
}
