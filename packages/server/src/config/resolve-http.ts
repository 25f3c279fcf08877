/** From settings to what the HTTP side of the client port serves. */
import { ConfigError, contradiction } from "@quorate/member";
import { quoteText } from "@quorate/proto";
import type { OptionValues } from "./options.ts";
import type { HttpConfig } from "./server-config.ts";
import type { Settings } from "./settings.ts";

/** scheme://host[:port], as browsers send it in Origin. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+$/i;
const ALL = "*";

/** The settings of the HTTP endpoints. Throws ConfigError. */
export function resolveHttp(settings: Settings, values: OptionValues): HttpConfig {
  const hosts = values["host-whitelist"];
  if (values.console && !values["enable-grpc-gateway"])
    contradiction("--console needs --enable-grpc-gateway: the page calls it");
  return {
    isGatewayOn: values["enable-grpc-gateway"],
    areKeysOn: values["enable-http-kv"],
    isConsoleOn: values.console,
    allowedOrigins: originsOf(values.cors),
    areOriginsGiven: settings.isSet("cors"),
    allowedHosts:
      hosts.length === 0 || hosts.includes(ALL) ? undefined : new Set(hosts.map(lowerCase)),
  };
}

/** The most threads: each has an engine of its own, and its share of all budgets. */
const MAX_FRONTEND_THREADS = 64;

/** --frontend-threads. Throws ConfigError. */
export function frontendThreadsOf(values: OptionValues): number | "auto" {
  const text = values["frontend-threads"];
  if (text === "auto") return text;
  const count = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (count <= MAX_FRONTEND_THREADS) return count;
  throw new ConfigError(
    "BadValue",
    `invalid value ${quoteText(text)} for flag -frontend-threads: must be auto, or a number from ` +
      `0 to ${MAX_FRONTEND_THREADS}`,
  );
}

function originsOf(origins: readonly string[]): ReadonlySet<string> | undefined {
  if (origins.length === 0 || (origins.length === 1 && origins[0] === ALL)) return undefined;
  for (const origin of origins) {
    if (ORIGIN.test(origin)) continue;
    throw new ConfigError(
      "BadValue",
      `invalid value "${origins.join(",")}" for flag -cors: "${origin}" is no origin ` +
        "(scheme://host[:port])",
    );
  }
  return new Set(origins.map(lowerCase));
}

function lowerCase(text: string): string {
  return text.toLowerCase();
}
