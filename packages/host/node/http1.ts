/**
 * Node's HTTP/1.1, taken without an import: `import ... from "node:http"` reads all exports of the
 * module, one of them is WebSocket, and reading that starts Node's own fetch with all that it
 * needs, some 90 modules.
 */

const { Agent, createServer, request } = process.getBuiltinModule("node:http");

/** `Agent`, `createServer` and `request` of node:http. */
export { Agent as Http1Agent, createServer as createHttp1Server, request as requestHttp1 };
