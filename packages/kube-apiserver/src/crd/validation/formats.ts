/**
 * The formats of strings that Kubernetes checks (apiextensions-apiserver:
 * pkg/apiserver/validation/formats.go; kube-openapi: pkg/validation/strfmt). Others are ignored,
 * with a warning when a schema brings them. All patterns here run in linear time.
 */

import type { Schema } from "@quorate/kube-storage";
import { isDns1123Label, isDns1123Subdomain } from "@quorate/kube-storage";
import { isCidr, isIpV4, isIpV6 } from "./ip.ts";

type Check = (text: string) => boolean;

function matches(pattern: RegExp): Check {
  return (text) => pattern.test(text);
}

const BYTE = "(0|[1-9]\\d?|1\\d\\d|2[0-4]\\d|25[0-5])";
const RGB = new RegExp(`^rgb\\(\\s*${BYTE}\\s*,\\s*${BYTE}\\s*,\\s*${BYTE}\\s*\\)$`);
const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const CREDIT_CARD =
  /^(4\d{12}(\d{3})?|5[1-5]\d{14}|6(011|5\d\d)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(2131|1800|35\d{3})\d{11})$/;

/** By Go's normalized name: without dashes. */
const FORMATS: Readonly<Record<string, Check>> = {
  bsonobjectid: matches(/^[0-9a-fA-F]{24}$/),
  uri: isRequestUri,
  email: isEmail,
  hostname: isHostname,
  ipv4: isIpV4,
  ipv6: isIpV6,
  cidr: isCidr,
  mac: isMac,
  uuid: matches(UUID),
  uuid3: uuidOf("3", "0123456789abcdef"),
  uuid4: uuidOf("4", "89ab"),
  uuid5: uuidOf("5", "89ab"),
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  creditcard: isCreditCard,
  ssn: (text) => text.length === 11 && /^\d{3}[- ]?\d{2}[- ]?\d{4}$/.test(text),
  hexcolor: matches(/^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/),
  rgbcolor: matches(RGB),
  byte: isBase64,
  password: () => true,
  date: isDate,
  duration: isDuration,
  datetime: isDateTime,
  k8sshortname: (text) => isDns1123Label(text).length === 0,
  k8slongname: (text) => isDns1123Subdomain(text).length === 0,
};

/** Such as a format for integers. */
const NUMBER_FORMATS: Readonly<Record<string, readonly string[]>> = {
  integer: ["int32", "int64"],
  number: ["float", "double"],
};

/** The check of a format; undefined for one that strings do not have. */
export function formatCheck(format: string): Check | undefined {
  const name = format.replaceAll("-", "");
  return Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
}

/** The format that counts for values of this schema; "" for none or an unknown one. */
export function effectiveFormat(schema: Schema): string {
  const { format = "" } = schema;
  if (format === "") return "";
  const type = schema["x-kubernetes-int-or-string"] === true ? "" : (schema.type ?? "");
  const known =
    type === "" || type === "string"
      ? formatCheck(format) !== undefined
      : (NUMBER_FORMATS[type]?.includes(format) ?? false);
  return known ? format : "";
}

/** An absolute URI, or an absolute path, as Go's url.ParseRequestURI accepts it. */
function isRequestUri(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are refused
  if (text === "" || /[\x00-\x1f\x7f]/.test(text)) return false;
  if (text === "*") return true;
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text);
  const rest = scheme === null ? text : text.slice(scheme[0].length);
  if (!rest.startsWith("/")) return scheme !== null;
  const [path = ""] = rest.split("?", 1);
  if (/%(?![0-9a-fA-F]{2})/.test(path)) return false;
  const authority = /^\/\/([^/?#]*)/.exec(rest)?.[1];
  return authority === undefined || isAuthority(authority);
}

function isAuthority(authority: string): boolean {
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  if (/[\s"<>\\^`{|}]/.test(authority)) return false;
  if (host.startsWith("[")) return /^\[[^\]]*\](:\d*)?$/.test(host);
  return !host.includes(":") || /^[^:]*:\d*$/.test(host);
}

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u0080-\\uffff-]+";
const ADDRESS = new RegExp(
  `^(${ATOM}(\\.${ATOM})*|"[^"\\\\]*")@(${ATOM}(\\.${ATOM})*|\\[[^\\]]*\\])$`,
);

/** An address, alone or as "Name <address>". */
function isEmail(text: string): boolean {
  if (text.length > 4096) return false;
  const named = /^[^<>]*<([^<>]*)>\s*$/.exec(text)?.[1];
  return ADDRESS.test(named ?? text.trim());
}

const NAME_PART = /^[a-zA-Z0-9\p{S}\p{L}]([a-zA-Z0-9\p{S}\p{L}-]{0,61}[a-zA-Z0-9\p{S}\p{L}])?$/u;

function isHostname(text: string): boolean {
  if (text.length > 255) return false;
  const parts = text.split(".");
  if (!parts.every((part) => NAME_PART.test(part))) return false;
  return parts.length === 1 || /^[a-zA-Z\p{L}]{2,63}$/u.test(parts.at(-1)!);
}

const MAC_OF_BYTES = /^(?:(?:[0-9a-fA-F]{2}:)+|(?:[0-9a-fA-F]{2}-)+)[0-9a-fA-F]{2}$/;
const MAC_OF_PAIRS = /^(?:[0-9a-fA-F]{4}\.)+[0-9a-fA-F]{4}$/;

/** An address of 6, 8 or 20 bytes: by bytes, or by pairs of bytes with dots between. */
function isMac(text: string): boolean {
  if ([17, 23, 59].includes(text.length)) return MAC_OF_BYTES.test(text);
  return [14, 19, 49].includes(text.length) && MAC_OF_PAIRS.test(text);
}

const VERSION_AT = 12;
const VARIANT_AT = 16;

/** @param variants what the digit of the variant may be */
function uuidOf(version: string, variants: string): Check {
  return (text) => {
    if (!UUID.test(text)) return false;
    const digits = text.replaceAll("-", "").toLowerCase();
    return digits[VERSION_AT] === version && variants.includes(digits.charAt(VARIANT_AT));
  };
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]/g, "");
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  const sum = [...digits].reduce((all, c, i) => all + (i + 1) * (c === "X" ? 10 : Number(c)), 0);
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]/g, "");
  if (!/^\d{13}$/.test(digits)) return false;
  return [...digits].reduce((all, c, i) => all + (i % 2 === 0 ? 1 : 3) * Number(c), 0) % 10 === 0;
}

function isCreditCard(text: string): boolean {
  const digits = text.replace(/\D/g, "");
  if (!CREDIT_CARD.test(digits)) return false;
  const sum = [...digits].reverse().reduce((all, c, i) => {
    const value = Number(c) * (i % 2 === 0 ? 1 : 2);
    return all + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}

function isBase64(text: string): boolean {
  return text !== "" && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}

/** RFC 3339's full-date. */
export function isDate(text: string): boolean {
  const parts = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (parts === null) return false;
  const [year = 0, month = 0, day = 0] = parts.slice(1).map(Number);
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1];
  return days !== undefined && day >= 1 && day <= days;
}

/** RFC 3339's date-time, in either case. */
export function isDateTime(text: string): boolean {
  const [date = "", time = ""] = text.toLowerCase().split("t", 2);
  const parts = /^(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)$/.exec(time);
  if (parts === null || !isDate(date)) return false;
  const [, hour = "", minute = "", second = ""] = parts;
  return hour <= "23" && minute <= "59" && second <= "59";
}

const GO_DURATION = /^[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/;
/** Of Scala's units, such as "minutes", the shortest that each begins with. */
const SCALA_DURATION = /(?:^|\D)\d+\s*(?:[dhmsw]|n(?:s|ano)|[uµ]s)/i;

/** Go's durations, such as "1h30m", and Scala's, such as "5 minutes". */
function isDuration(text: string): boolean {
  return GO_DURATION.test(text) || SCALA_DURATION.test(text);
}
