/**
 * The JSON gateway of a real member: by both HTTP versions and WebSocket, with data on the client
 * port alone, and its calls in the metrics of gRPC.
 */
import assert from "node:assert/strict";
import { connect } from "node:http2";
import { test } from "node:test";
import { WebSocket } from "ws";
import { withCluster } from "../support/cluster.ts";
import { freePorts } from "../support/ports.ts";
import { until } from "../support/until.ts";

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function post(url: string, body: string): Promise<Answer> {
  const response = await fetch(url, { method: "POST", body });
  return { status: response.status, text: await response.text() };
}

function postHttp2(origin: string, path: string, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const session = connect(origin);
    session.on("error", reject);
    const stream = session.request({ ":method": "POST", ":path": path });
    let status = 0;
    let text = "";
    stream.on("response", (headers) => {
      status = Number(headers[":status"]);
    });
    stream.on("data", (piece: Buffer) => {
      text += piece.toString();
    });
    stream.on("end", () => {
      session.close();
      resolve({ status, text });
    });
    stream.end(body);
  });
}

test("members serve the gateway beside gRPC", async () => {
  const [metricsPort] = await freePorts(1);
  const metricsUrl = `http://127.0.0.1:${metricsPort}`;
  const flags = [`--listen-metrics-urls=${metricsUrl}`];
  await withCluster({ size: 1, flags }, async (cluster) => {
    const url = cluster.members[0].clientUrl;
    const body = '{"key":"Zm9v","value":"YmFy"}';
    assert.equal((await post(`${url}/v3/kv/put`, body)).status, 200);
    const second = await postHttp2(url, "/v3/kv/range", '{"key":"Zm9v"}');
    assert.equal(second.status, 200);
    assert.match(second.text, /"value":"YmFy"\}\],"count":"1"\}$/);
    assert.equal((await post(`${url}/v3/kv/put`, "{")).status, 400);
    // Metrics URLs are often open to all; they have no data.
    assert.equal((await post(`${metricsUrl}/v3/kv/range`, '{"key":"Zm9v"}')).status, 404);
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: object };
    assert.ok("/v3/kv/put" in document.paths);
    await watchByWebSocket(url);
    const metrics = await (await fetch(`${metricsUrl}/metrics`)).text();
    assert.match(metrics, /^quorate_gateway_malformed_total 1$/m);
    const handled =
      'grpc_code="OK",grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"';
    assert.match(metrics, new RegExp(`^grpc_server_handled_total\\{${handled}\\} 2$`, "m"));
  });
});

async function watchByWebSocket(url: string): Promise<void> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v3/watch`);
  const messages: string[] = [];
  socket.on("message", (data: Buffer) => void messages.push(data.toString()));
  await new Promise((resolve) => socket.on("open", resolve));
  socket.send('{"create_request":{"key":"Zm9v"}}');
  await until("the watch is created", () => messages.some((text) => text.includes('"created"')));
  await post(`${url}/v3/kv/put`, '{"key":"Zm9v","value":"Mg=="}');
  await until("an event comes", () => messages.some((text) => text.includes('"value":"Mg=="')));
  const closed = new Promise((resolve) => socket.on("close", resolve));
  socket.close();
  await closed;
}
