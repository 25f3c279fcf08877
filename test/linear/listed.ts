/** The rows of tables of parsers: a parser that takes more than texts, and how it is called. */

export const KIB = 1024;
/** The longest head of a request. */
export const HEAD_BYTES = 64 * KIB;
/** What the test gives a body's parser; a body may be longer. */
export const BODY_BYTES = 256 * KIB;

// biome-ignore lint/suspicious/noExplicitAny: a module's exports, by name
export type Module = any;
export type Make = (
  module: Module,
  load: (file: string) => Promise<Module>,
) => Promise<Call> | Call;
export type Call = (text: string) => unknown;

export interface Listed {
  readonly file: string;
  readonly name: string;
  readonly maxBytes: number;
  readonly limitMsPerKib?: number;
  readonly make: Make;
}

export const latin1 = (text: string): Uint8Array => Buffer.from(text, "latin1");
export const utf8 = (text: string): string => Buffer.from(text, "latin1").toString("utf8");

/** @param file the file that has the parser, from packages/, without its extension */
export function listed(file: string, name: string, make: Make, maxBytes = HEAD_BYTES): Listed {
  return { file: `packages/${file}.ts`, name, make, maxBytes };
}

/** The head of a request, as the engine hands it on. */
export const head = (headers: Readonly<Record<string, string>>, query = "") => ({
  method: "GET",
  path: "/",
  query,
  headers: new Map(Object.entries(headers)),
  peerAddress: "127.0.0.1",
  isEncrypted: false,
});
