/** URLs (apiserver: pkg/cel/library/urls.go): absolute ones, or absolute paths. */
import type { Environment } from "../lang/environment.ts";
import { LibraryValue, URL_TYPE } from "../lang/library.ts";
import { EvaluationError } from "../lang/values.ts";

const PARTS =
  /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)(?::(\d*))?)?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/s;

class Url extends LibraryValue {
  readonly celType = URL_TYPE;
  readonly scheme: string;
  readonly hostname: string;
  readonly port: string;
  readonly path: string;
  readonly query: string;

  readonly #text: string;

  constructor(text: string, parts: readonly (string | undefined)[]) {
    super();
    this.#text = text;
    [this.scheme, this.hostname, this.port, this.path, this.query] = parts
      .slice(1)
      .map((part) => part ?? "") as [string, string, string, string, string];
  }

  equals(other: unknown): boolean {
    return other instanceof Url && other.#text === this.#text;
  }
}

/** Undefined for a text that is neither an absolute URL nor a path. */
export function parseUrl(text: string): Url | undefined {
  const [path = ""] = text.split(/[?#]/, 1);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are refused
  if (text === "" || /[\x00-\x20\x7f]/.test(path)) return undefined;
  const parts = PARTS.exec(text);
  if (parts === null || /%(?![0-9a-fA-F]{2})/.test(parts[4] ?? "")) return undefined;
  return parts[1] !== undefined || text.startsWith("/") ? new Url(text, parts) : undefined;
}

function required(text: string): Url {
  const url = parseUrl(text);
  if (url !== undefined) return url;
  throw new EvaluationError(
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

export function registerUrls(environment: Environment): void {
  const type = "kubernetes.URL";
  environment
    .type(URL_TYPE)
    .function(`url(string): ${type}`, required)
    .function("isURL(string): bool", (text: string) => parseUrl(text) !== undefined)
    .function(`${type}.getScheme(): string`, (url: Url) => url.scheme)
    .function(`${type}.getHostname(): string`, (url: Url) =>
      url.hostname.replace(/^\[(.*)\]$/, "$1"),
    )
    .function(`${type}.getHost(): string`, (url: Url) =>
      url.port === "" ? url.hostname : `${url.hostname}:${url.port}`,
    )
    .function(`${type}.getPort(): string`, (url: Url) => url.port)
    .function(`${type}.getEscapedPath(): string`, (url: Url) => url.path)
    .function(`${type}.getQuery(): map<string, list<string>>`, queryOf);
}
