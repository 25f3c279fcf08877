/**
 * Paths as Go's ServeMux takes them (net/http: cleanPath): a path with empty or dot segments is
 * redirected to the clean one; percent-encoded characters count as themselves.
 */
import type { HttpHead, HttpResponse } from "@quorate/host";
import { escapeHtml, toUtf8 } from "@quorate/proto";

const UNCLEAN = /\/\/|\/\.\.?(\/|$)/;

/** The decoded path; undefined if its percent-encoding is broken. */
export function decodedPath(path: string): string | undefined {
  if (!path.includes("%")) return path;
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return undefined;
  const latin1 = path.replace(/%(..)/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return toUtf8(Uint8Array.from(latin1, (char) => char.charCodeAt(0)));
}

/** A path without empty and dot segments; a slash at its end stays. */
export function cleanPath(path: string): string {
  if (!UNCLEAN.test(path)) return path;
  const clean: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") clean.pop();
    else if (segment !== "" && segment !== ".") clean.push(segment);
  }
  const end = clean.length > 0 && path.endsWith("/") ? "/" : "";
  return `/${clean.join("/")}${end}`;
}

/** Go's redirect to another path with the same query. */
export function redirect({ method, query }: HttpHead, path: string): HttpResponse {
  const location = encodeURI(path) + (query === "" ? "" : `?${query}`);
  if (method !== "GET" && method !== "HEAD")
    return { status: 307, headers: { location }, body: "" };
  return {
    status: 307,
    headers: { "content-type": "text/html; charset=utf-8", location },
    body: `<a href="${escapeHtml(location)}">Temporary Redirect</a>.\n\n`,
  };
}
