/** Metrics in Prometheus' text format, quantiles, and HTTP requests to an endpoint. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { httpGet, MAX_RESPONSE_BYTES } from "../src/observe/http.ts";
import { countOf, histogramSince, MetricsText, quantile } from "../src/observe/metrics-text.ts";

const text = `# HELP up Whether it is up.
# TYPE up gauge
up 1
calls_total{method="Put",code="OK"} 7
calls_total{method="Put",code="Unavailable"} 2
calls_total{method="Range",code="OK"} 1.5e3 1700000000000
broken{
nan NaN
took_bucket{op="a",le="0.1"} 10
took_bucket{op="a",le="0.2"} 90
took_bucket{op="a",le="+Inf"} 100
took_bucket{op="b",le="0.1"} 100
took_bucket{op="b",le="0.2"} 100
took_bucket{op="b",le="+Inf"} 100
took_sum{op="a"} 12
`;

test("values are summed over the given labels", () => {
  const metrics = new MetricsText(text);
  assert.equal(metrics.value("up"), 1);
  assert.equal(metrics.value("calls_total"), 1509);
  assert.equal(metrics.value("calls_total", 'method="Put"'), 9);
  assert.equal(metrics.value("calls_total", 'method="Put"', 'code="OK"'), 7);
  assert.equal(metrics.value("calls_total", 'method="Txn"'), undefined);
  assert.equal(metrics.value("nosuch"), undefined);
  assert.equal(metrics.value("nan"), undefined);
  assert.equal(metrics.histogram("up"), undefined);
});

test("quantiles are those that Prometheus estimates", () => {
  const metrics = new MetricsText(text);
  const both = metrics.histogram("took")!;
  assert.deepEqual(both, {
    bounds: [0.1, 0.2, Number.POSITIVE_INFINITY],
    cumulative: [110, 190, 200],
  });
  assert.equal(countOf(both), 200);
  const a = metrics.histogram("took", 'op="a"')!;
  assert.equal(quantile(a, 0.1), 0.1);
  assert.ok(Math.abs(quantile(a, 0.5)! - 0.15) < 1e-9);
  // Beyond the last bound the value is unknown.
  assert.equal(quantile(a, 0.99), 0.2);
  assert.equal(
    quantile({ bounds: [1, Number.POSITIVE_INFINITY], cumulative: [0, 0] }, 0.5),
    undefined,
  );
});

test("the observations since an earlier scrape; all of them after a restart", () => {
  const at = (...cumulative: number[]) => ({ bounds: [1, Number.POSITIVE_INFINITY], cumulative });
  assert.deepEqual(histogramSince(at(5, 9), at(3, 4)), at(2, 5));
  assert.deepEqual(histogramSince(at(1, 2), at(3, 4)), at(1, 2));
  assert.deepEqual(histogramSince(at(1, 2), undefined), at(1, 2));
});

async function withServer(
  listener: RequestListener,
  body: (address: string) => Promise<void>,
): Promise<void> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await body(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("a response comes with its date and the times around it", async () => {
  await withServer(
    (_request, response) =>
      response.setHeader("date", "Sun, 22 Nov 2026 10:00:00 GMT").end("hello"),
    async (address) => {
      const answer = await httpGet({ secure: false, address }, "/x", undefined, 5000);
      assert.deepEqual(
        [answer.status, answer.body, answer.dateMs],
        [200, "hello", Date.UTC(2026, 10, 22, 10)],
      );
      assert.ok(answer.sentMs <= answer.receivedMs);
    },
  );
});

test("a response that is too long or does not come rejects", async () => {
  const piece = Buffer.alloc(1024 * 1024);
  await withServer(
    (request, response) => {
      if (request.url === "/never") return;
      for (let sent = 0; sent <= MAX_RESPONSE_BYTES; sent += piece.length) response.write(piece);
      response.end();
    },
    async (address) => {
      await assert.rejects(
        httpGet({ secure: false, address }, "/long", undefined, 20_000),
        /is longer than 16777216 bytes/,
      );
      await assert.rejects(
        httpGet({ secure: false, address }, "/never", undefined, 50),
        /no response within 50 ms/,
      );
    },
  );
});
