/**
 * The texts of failed connections become reasons for operators; a server's own text stays
 * unchanged.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonOf } from "../node/link-reasons.ts";

const reasons: readonly (readonly [details: string, reason: string])[] = [
  ["connect ECONNREFUSED 127.0.0.1:1", "connection refused"],
  ["connect ENOENT /run/q.sock", "no socket at /run/q.sock"],
  ["connect EHOSTUNREACH 10.0.0.1:2379 - Local (10.0.0.2:4711)", "no route to that address"],
  ["getaddrinfo ENOTFOUND m9", "the name m9 cannot be resolved"],
  ["self-signed certificate in certificate chain", "self-signed certificate in certificate chain"],
  [
    "Client network socket disconnected before secure TLS connection was established",
    "the connection was closed during the TLS handshake",
  ],
  [
    "40E3:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required:../deps/openssl/x.c:918:SSL alert number 116\n",
    "the member requires a client certificate (tlsv13 alert certificate required)",
  ],
  [
    "40E3:error:0A000418:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca:../deps/x.c:918:SSL alert number 48\n",
    "the member refused this client's certificate (tlsv1 alert unknown ca)",
  ],
  [
    "40234A281E7F0000:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:../deps/tlsany_meth.c:78:\n",
    "the server there does not speak TLS (wrong version number)",
  ],
  [
    "40E3:error:0A000410:SSL routines:f:some other reason:../deps/x.c:1:\n",
    "the TLS handshake failed (some other reason)",
  ],
  ["error reading from server: EOF", "the connection was closed"],
  ["error reading from server: read: connection reset by peer", "the connection was closed"],
  ["protocol error", "the server there does not speak gRPC"],
  [
    'received a response of unexpected content-type "text/html"',
    "the server there does not speak gRPC",
  ],
  [
    "unexpected HTTP status code received from server: 404",
    "the server there does not speak gRPC (HTTP status 404)",
  ],
  [
    "stream terminated by RST_STREAM with error code: INTERNAL_ERROR",
    "the server reset the stream (HTTP/2 code INTERNAL_ERROR)",
  ],
  ["etcdserver: request timed out", "etcdserver: request timed out"],
  ["", ""],
];

test("reasons", () => {
  for (const [details, reason] of reasons) assert.equal(reasonOf(details), reason, details);
});
