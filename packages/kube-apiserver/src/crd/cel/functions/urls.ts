/** URLs (apiserver: pkg/cel/library/urls.go): absolute ones, or absolute paths. */
import type { CelEnvironment } from "../library.ts";

const PARTS =
  /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)(?::(\d*))?)?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/s;

class Url {
  readonly scheme: string;
  readonly hostname: string;
  readonly port: string;
  readonly path: string;
  readonly query: string;

  constructor(parts: readonly (string | undefined)[]) {
    [this.scheme, this.hostname, this.port, this.path, this.query] = parts
      .slice(1)
      .map((part) => part ?? "") as [string, string, string, string, string];
  }
}

function parse(text: string): Url | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are refused
  if (text === "" || /[\x00-\x20\x7f]/.test(text.split(/[?#]/, 1)[0])) return undefined;
  const parts = PARTS.exec(text);
  if (parts === null || /%(?![0-9a-fA-F]{2})/.test(parts[4] ?? "")) return undefined;
  return parts[1] !== undefined || text.startsWith("/") ? new Url(parts) : undefined;
}

function required(text: string): Url {
  const url = parse(text);
  if (url !== undefined) return url;
  throw new SyntaxError(
    `URL parse error during conversion from string: parse ${JSON.stringify(text)}: ` +
      "invalid URI for request",
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

function queryOf({ query }: Url): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const at = pair.indexOf("=");
    const name = decoded(at < 0 ? pair : pair.slice(0, at));
    const value = at < 0 ? "" : decoded(pair.slice(at + 1));
    const known = values.get(name);
    if (known === undefined) values.set(name, [value]);
    else known.push(value);
  }
  return values;
}

export function registerUrls(environment: CelEnvironment): void {
  const type = "kubernetes.URL";
  environment
    .registerType(type, Url)
    .registerFunction(`url(string): ${type}`, required)
    .registerFunction("isURL(string): bool", (text: string) => parse(text) !== undefined)
    .registerFunction(`${type}.getScheme(): string`, (url: Url) => url.scheme)
    .registerFunction(`${type}.getHostname(): string`, (url: Url) =>
      url.hostname.replace(/^\[(.*)\]$/, "$1"),
    )
    .registerFunction(`${type}.getHost(): string`, (url: Url) =>
      url.port === "" ? url.hostname : `${url.hostname}:${url.port}`,
    )
    .registerFunction(`${type}.getPort(): string`, (url: Url) => url.port)
    .registerFunction(`${type}.getEscapedPath(): string`, (url: Url) => url.path)
    .registerFunction(`${type}.getQuery(): map<string, list<string>>`, queryOf);
}
