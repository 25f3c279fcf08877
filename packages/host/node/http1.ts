/**
 * Node's HTTP/1.1 without an import: `import ... from "node:http"` reads all exports of the module,
 * among them WebSocket, which loads Node's fetch with some 90 modules.
 */

const { Agent, createServer, request } = process.getBuiltinModule("node:http");

/** `Agent`, `createServer` and `request` of node:http. */
export { Agent as Http1Agent, createServer as createHttp1Server, request as requestHttp1 };
