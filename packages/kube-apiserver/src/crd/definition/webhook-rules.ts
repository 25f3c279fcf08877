/** The rules for a webhook's address (apiserver: pkg/util/webhook/validation.go). */

import type { FieldError } from "@quorate/kube-storage";
import { invalidValue, isDns1123Subdomain, required } from "@quorate/kube-storage";
import type { WebhookClientConfig } from "../../admission/webhook-caller.ts";
import { child } from "../schema/paths.ts";

const FORM = "; desired format: https://host[/path]";
const URL_PARTS =
  /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/([^/?#]*))?[^?#]*(?:\?([^#]*))?(?:#(.*))?$/s;

export function urlErrors(url: string, path: string): FieldError[] {
  const parts = URL_PARTS.exec(url);
  if (parts === null) return [required(path, `url must be a valid URL: ${url}${FORM}`)];
  const [, scheme = "", authority = "", query = "", fragment = ""] = parts;
  const user = authority.includes("@") ? authority.slice(0, authority.lastIndexOf("@")) : undefined;
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  const errors: FieldError[] = [];
  if (scheme.toLowerCase() !== "https") {
    const detail = `'https' is the only allowed URL scheme${FORM}`;
    errors.push(invalidValue(path, scheme.toLowerCase(), detail));
  }
  if (host === "") errors.push(invalidValue(path, host, `host must be specified${FORM}`));
  if (user !== undefined) {
    errors.push(invalidValue(path, user, "user information is not permitted in the URL"));
  }
  if (fragment !== "") {
    errors.push(invalidValue(path, fragment, "fragments are not permitted in the URL"));
  }
  if (query !== "") {
    errors.push(invalidValue(path, query, "query parameters are not permitted in the URL"));
  }
  return errors;
}

/**
 * The service of a conversion webhook. Kubernetes reports a missing name as a missing namespace and
 * the other way round here; clients see the same.
 */
export function serviceErrors(
  service: NonNullable<WebhookClientConfig["service"]>,
  path: string,
): FieldError[] {
  const { name = "", namespace = "", port = 443, path: urlPath = "" } = service;
  const errors: FieldError[] = [];
  if (namespace === "") errors.push(required(child(path, "name")));
  if (name === "") errors.push(required(child(path, "namespace")));
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    const detail = "port is not valid: must be between 1 and 65535, inclusive";
    errors.push(invalidValue(child(path, "port"), port, detail));
  }
  return [...errors, ...urlPathErrors(urlPath, child(path, "path"))];
}

function urlPathErrors(text: string, path: string): FieldError[] {
  if (text === "" || text === "/") return [];
  if (text === "//") return [invalidValue(path, text, "segment[0] may not be empty")];
  const errors: FieldError[] = [];
  if (!text.startsWith("/")) errors.push(invalidValue(path, text, "must start with a '/'"));
  for (const [i, segment] of text.slice(1).replace(/\/$/, "").split("/").entries()) {
    if (segment === "") errors.push(invalidValue(path, text, `segment[${i}] may not be empty`));
    else {
      const texts = isDns1123Subdomain(segment).map((detail) => `segment[${i}]: ${detail}`);
      errors.push(...texts.map((detail) => invalidValue(path, text, detail)));
    }
  }
  return errors;
}

/** "-----BEGIN CERTIFICATE-----" in base64. */
const PEM_BEGIN = /^\s*(LS0tLS1CRUdJTi|[A-Za-z0-9+/]{4}.*LS0tLS1CRUdJTi)/s;

/** Whether base64 text begins like certificates; whitespace alone counts as none. */
export function isCaBundle(base64: string): boolean {
  return PEM_BEGIN.test(base64);
}
