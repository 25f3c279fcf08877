/**
 * A server of bench/http-engine.ts in a process of its own: prints its port, and serves until it is
 * killed.
 *
 *     node bench/engine-servers.ts engine | node-http
 *
 * GET answers five bytes, POST what it received. /stream begins a response that does not end.
 */
import { type HttpExchangeHandler, silentLogger } from "@quorate/host";
import { createHttp1Server, nodeClock } from "@quorate/host/node";
import { EngineServer } from "@quorate/rpc/node";

const TEXT = { "content-type": "text/plain" };
const HELLO = "fine\n";

const handler: HttpExchangeHandler = (exchange) => {
  if (exchange.head.path === "/stream") {
    exchange.start(200, TEXT);
    return {};
  }
  const pieces: Uint8Array[] = [];
  return {
    data: (bytes) => void pieces.push(bytes),
    ended: () => {
      const body = pieces.length === 0 ? HELLO : Buffer.concat(pieces);
      exchange.respond({ status: 200, headers: TEXT, body });
    },
  };
};

async function engine(): Promise<number> {
  const server = new EngineServer(
    { listen: [{ host: "127.0.0.1", port: 0, secure: false }] },
    {
      services: { unary: new Map(), stream: new Map() },
      http: handler,
      clock: nodeClock,
      logger: silentLogger,
    },
  );
  const [bound] = await server.listen();
  return bound.port ?? 0;
}

function nodeHttp(): Promise<number> {
  const server = createHttp1Server((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const body = pieces.length === 0 ? HELLO : Buffer.concat(pieces);
      response.writeHead(200, { ...TEXT, "content-length": body.length });
      response.end(body);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
  });
}

console.log(await (process.argv[2] === "engine" ? engine() : nodeHttp()));
