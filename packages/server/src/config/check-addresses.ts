/** Checks of the URLs that a member listens on and advertises. */

import {
  checkBindUrls,
  checked,
  checkHostUrls,
  contradiction,
  listenHost,
  urlsText,
  ValueError,
} from "@quorate/member";
import { quoteText } from "@quorate/proto";
import type { OptionValues } from "./options.ts";
import type { Settings } from "./settings.ts";

const LISTENERS = [
  "listen-peer-urls",
  "listen-client-urls",
  "listen-client-http-urls",
  "listen-metrics-urls",
] as const;

/**
 * Throws ConfigError.
 * @param fromFile if the settings come from a configuration file
 */
export function checkAddresses(settings: Settings, values: OptionValues, fromFile: boolean): void {
  for (const name of LISTENERS) {
    checked(`--${name}: `, "Contradiction", () => checkBindUrls(values[name]));
  }
  for (const name of [
    "listen-peer-urls",
    "listen-client-urls",
    "initial-advertise-peer-urls",
  ] as const) {
    if (values[name].length === 0) contradiction(`--${name} must not be empty`);
  }
  for (const [name, form] of [
    ["initial-advertise-peer-urls", '"host:port"'],
    [
      "advertise-client-urls",
      'in the format "host:port", "unix:/path/to/socket" or "unixs:/path/to/socket"',
    ],
  ] as const) {
    try {
      checkHostUrls(values[name]);
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      contradiction(
        `--${name} ${quoteText(urlsText(values[name]))} must be ${form} (${error.message})`,
      );
    }
  }
  if (settings.isSet("listen-client-urls") && !settings.isSet("advertise-client-urls")) {
    if (!fromFile)
      contradiction(
        "--advertise-client-urls is required when --listen-client-urls is set explicitly",
      );
    settings.warn(
      "advertise-client-urls is not in the configuration file; clients get the default",
      {
        "advertise-client-urls": urlsText(values["advertise-client-urls"]),
      },
    );
  }
  if (values["advertise-client-urls"].length === 0)
    contradiction(
      "--advertise-client-urls is required when --listen-client-urls is set explicitly",
    );
  checkPlaces(values);
}

/** Ports whose URLs may name one place twice: with TLS and without. */
const SHARED: ReadonlySet<string> = new Set(["listen-client-urls", "listen-client-http-urls"]);

/** No place is listened on for two purposes. */
function checkPlaces(values: OptionValues): void {
  const listeners = new Map<string, string>();
  for (const name of LISTENERS) {
    for (const url of values[name]) {
      if (url.path === "" && url.port === 0) continue;
      const place = url.path === "" ? `${listenHost(url)}:${url.port}` : url.path;
      const other = listeners.get(place);
      if (other === "listen-client-urls" && name === "listen-client-http-urls")
        contradiction(`cannot bind both --${other} and --${name} on the same url ${url.text}`);
      if (other !== undefined && !(other === name && SHARED.has(name))) {
        const who = other === name ? `two URLs of --${name}` : `--${name} and --${other} both`;
        const what = url.path === "" ? "port" : "path";
        contradiction(`${who} want to listen on ${url.text}: give one of them another ${what}`);
      }
      listeners.set(place, name);
    }
  }
}

export function warnOfIgnoredTls(settings: Settings, values: OptionValues): void {
  for (const [urlsName, certName, authName, field] of [
    ["listen-peer-urls", "peer-cert-file", "peer-client-cert-auth", "peer-url"],
    ["listen-client-urls", "cert-file", "client-cert-auth", "client-url"],
    ["listen-client-http-urls", "cert-file", "client-cert-auth", "client-url"],
  ] as const) {
    for (const url of values[urlsName]) {
      if (url.scheme === "https" || url.scheme === "unixs") continue;
      if (values[certName] !== "")
        settings.warn(
          "scheme is HTTP while key and cert files are present; ignoring key and cert files",
          { [field]: url.text },
        );
      if (values[authName])
        settings.warn(
          `scheme is HTTP while --${authName} is enabled; ignoring client cert auth for this URL`,
          { [field]: url.text },
        );
    }
  }
}
