/** Which bytes are a request, and which are refused (RFC 9112). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ECHO, Http1Client, responses } from "./engine/http1.ts";

const HOST = "Host: x\r\n";
const get = (fields = "", line = "GET / HTTP/1.1") => `${line}\r\n${HOST}${fields}\r\n`;
const chunked = (body: string) =>
  `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${body}`;

/** Requests, and the status of their response; "" for none. */
const table: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  "request lines": [
    [get(), "200"],
    [get("", "GET /a?b=c?d&%20 HTTP/1.1"), "200"],
    [get("", "OPTIONS * HTTP/1.1"), "200"],
    [get("", "PROPFIND /a HTTP/1.1"), "200"],
    [get("", "GET http://x/a?b HTTP/1.1"), "200"],
    [`\r\n${get()}`, "200"],
    [get("", "GET http://y/a HTTP/1.1"), "400"],
    [get("", "GET * HTTP/1.1"), "400"],
    [get("", "CONNECT x:80 HTTP/1.1"), "400"],
    [get("", "GET a HTTP/1.1"), "400"],
    [get("", "GET /#a HTTP/1.1"), "400"],
    [get("", "GET /\x80 HTTP/1.1"), "400"],
    [get("", "GET /a b HTTP/1.1"), "400"],
    [get("", "GET  / HTTP/1.1"), "400"],
    [get("", "GET / HTTP/1.2"), "505"],
    [get("", "GET / HTTP/2.0"), ""],
    [get("", "GET /"), ""],
    [get("", " GET / HTTP/1.1"), ""],
    [get("", `${"M".repeat(33)} / HTTP/1.1`), ""],
    ["\r\n\r\n\r\n", ""],
    ["\n", "400"],
    ["\x16\x03\x01", ""],
    ["SSH-2.0-OpenSSH_9.2p1\r\n", ""],
  ],
  "header fields": [
    [get("A:b\r\nA: \t c \t\r\nB:\r\nC: \x80\xff\r\n"), "200"],
    ["GET / HTTP/1.1\r\nHost:\r\n\r\n", "200"],
    ["GET / HTTP/1.0\r\n\r\n", "200"],
    ["GET / HTTP/1.1\r\n\r\n", "400"],
    [get("Host: x\r\n"), "400"],
    ["GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400"],
    [get("A : b\r\n"), "400"],
    [get(" A: b\r\n"), "400"],
    [get("A: b\r\n c\r\n"), "400"],
    [get("A: b\r\n\tc\r\n"), "400"],
    [get("A\r\n"), "400"],
    [get(": b\r\n"), "400"],
    [get("A(: b\r\n"), "400"],
    [get("\x80: b\r\n"), "400"],
    [get("A: b\0c\r\n"), "400"],
    [get("A: b\x7f\r\n"), "400"],
    [get("A: b\rc\r\n"), "400"],
    [get("A: b\r\n\rhidden\r\n"), "400"],
    [get("A: b\n"), "400"],
    ["GET / HTTP/1.1\nHost: x\n\n", "400"],
    [get("Expect: 200-ok\r\n"), "417"],
  ],
  "lengths of bodies": [
    [get("Content-Length: 0\r\n"), "200"],
    [`${get("Content-Length: 3\r\n")}abc`, "200"],
    [`${get("Content-Length: 3\r\nContent-Length: 3\r\n")}abc`, "400"],
    [`${get("Content-Length: 3\r\nContent-Length: 4\r\n")}abc`, "400"],
    [`${get("Content-Length: 3, 3\r\n")}abc`, "400"],
    [get("Content-Length: +3\r\n"), "400"],
    [get("Content-Length: -3\r\n"), "400"],
    [get("Content-Length: 0x3\r\n"), "400"],
    [get("Content-Length: 3 3\r\n"), "400"],
    [get("Content-Length:\r\n"), "400"],
    [get("Content-Length: 1234567890123456\r\n"), "400"],
    [get("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), "400"],
    [get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "400"],
    [get("Transfer-Encoding: gzip, chunked\r\n"), "501"],
    [get("Transfer-Encoding: xchunked\r\n"), "501"],
    [get("Transfer-Encoding: chunked\x0b\r\n"), "400"],
    [get("Transfer-Encoding: chunked\t\r\n"), "400"],
    [get("Content-Length:\t0\r\n"), "400"],
    ["POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"],
  ],
  chunks: [
    [chunked("0\r\n\r\n"), "200"],
    [chunked("3\r\nabc\r\n00A\r\n0123456789\r\n000\r\nA: b\r\n\r\n"), "200"],
    [chunked('3;a=b;c="d e"\r\nabc\r\n0\r\n\r\n'), "200"],
    [chunked("3\nabc\r\n0\r\n\r\n"), "400"],
    [chunked("3\r\nabc\n0\r\n\r\n"), "400"],
    [chunked("3\r\nabcd\r\n0\r\n\r\n"), "400"],
    [chunked(" 3\r\nabc\r\n0\r\n\r\n"), "400"],
    [chunked("3 \r\nabc\r\n0\r\n\r\n"), "400"],
    [chunked("0x3\r\nabc\r\n0\r\n\r\n"), "400"],
    [chunked("-3\r\nabc\r\n0\r\n\r\n"), "400"],
    [chunked("1234567890123\r\n"), "400"],
    [chunked("3;\r\nabc\r\n0\r\n\r\n"), "400"],
    [chunked('3;a="b\r\nabc\r\n0\r\n\r\n'), "400"],
    [chunked("0\r\nContent-Length: 3\r\n\r\n"), "400"],
    [chunked("0\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n"), "400"],
    [chunked("3;a\rb\r\nabc\r\n0\r\n\r\n"), "400"],
    [chunked("3;a\nabc\r\n0\r\n\r\n"), "400"],
    [chunked("0\r\nA : b\r\n\r\n"), "400"],
    [chunked("0\r\n a: b\r\n\r\n"), "400"],
    [chunked("0\r\nA: b\n\r\n"), "400"],
  ],
};

describe("HTTP/1.1", () => {
  for (const [name, cases] of Object.entries(table)) {
    test(`${name}: what is accepted and what is refused, whole and byte by byte`, () => {
      for (const [request, status] of cases) {
        const whole = new Http1Client(ECHO).send(request);
        const expected = status === "" ? [] : [status];
        const text = whole.take();
        assert.deepEqual(responses(text), expected, JSON.stringify(request));
        assert.equal(whole.isDestroyed, status === "", JSON.stringify(request));
        const isRefused = status !== "200" && status !== "";
        assert.equal(/\r\nconnection: close\r\n/.test(text), isRefused || /1\.0/.test(request));
        const slow = new Http1Client(ECHO);
        for (const byte of request) slow.send(byte);
        assert.equal(slow.take(), text, JSON.stringify(request));
        assert.equal(slow.isDestroyed, whole.isDestroyed);
        for (const client of [whole, slow]) {
          client.connection.lost();
          assert.equal(client.countedBytes, 0, "what a connection held is released");
        }
      }
    });
  }

  test("heads arrive with their fields, targets and bodies", () => {
    const client = new Http1Client(ECHO);
    client.send(get("A: 1\r\na: 2\r\nCookie: x\r\nCookie: y\r\n", "GET http://x/a%20?b HTTP/1.1"));
    client.send(chunked("3;e\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
    const text = client.take();
    assert.ok(text.endsWith("\r\n\r\nPOST /? abcde"), text);
    assert.ok(text.includes("\r\n\r\nGET /a%20?b HTTP/1.1 200 OK\r\n"), text);
    const { headers, isSecure } = client.exchanges[0].head;
    assert.deepEqual(
      [...headers],
      [
        ["host", "x"],
        ["a", "1, 2"],
        ["cookie", "x; y"],
      ],
    );
    assert.equal(isSecure, false);
  });
});
