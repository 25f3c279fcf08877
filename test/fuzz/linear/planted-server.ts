/**
 * A small server with handlers whose work grows faster than the text, beside ones that are linear:
 * the attack must find the first and leave the others (attack.test.ts). It prints its port.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("latin1");
}

/** A sort that looks at what came before, from the start. */
function sortedSlowly(names: readonly string[]): string[] {
  const sorted: string[] = [];
  for (const name of names) {
    let at = 0;
    while (at < sorted.length && sorted[at] < name) at++;
    sorted.splice(at, 0, name);
  }
  return sorted;
}

type Handler = (request: IncomingMessage, body: string) => unknown;

const HANDLERS: Readonly<Record<string, Handler>> = {
  // The list of Connection as it was.
  "/list": ({ headers }) => String(headers["x-list"]).replace(/[ \t]*,[ \t]*/g, ","),
  "/list-linear": ({ headers }) =>
    String(headers["x-list"])
      .split(",")
      .map((one) => one.trim()),
  // The path of the API server as it was.
  "/path": ({ url = "" }) => url.replace(/^\/+|\/+$/g, ""),
  // Entries whose order is looked for by walking.
  "/entries": (_, body) => sortedSlowly(JSON.parse(body).entries.map(String)),
  "/entries-linear": (_, body) => JSON.parse(body).entries.map(String).sort(),
  // Names that are compared with all that came before.
  "/form": (_, body) => {
    const seen: string[] = [];
    for (const pair of body.split("&"))
      if (!seen.includes(pair)) seen.push(`${pair}${seen.length}`);
    return seen;
  },
};

const server = createServer({ maxHeaderSize: 64 * 1024 }, (request, response) => {
  const path = `/${(request.url ?? "").split(/[/?]/, 2)[1]}`;
  bodyOf(request).then(
    (body) => {
      let status = 200;
      try {
        HANDLERS[path]?.(request, body);
      } catch {
        status = 400;
      }
      response.writeHead(status, { "content-length": 0 }).end();
    },
    () => request.destroy(),
  );
});
server.listen(0, "127.0.0.1", () =>
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`),
);
