/** From settings to what the HTTP side of the client port serves. */
import { ConfigError } from "@quorate/member";
import type { OptionValues } from "./options.ts";
import type { HttpConfig } from "./server-config.ts";
import type { Settings } from "./settings.ts";

/** scheme://host[:port], as browsers send it in Origin. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+$/i;
const ALL = "*";

/** The settings of the HTTP endpoints. Throws ConfigError. */
export function resolveHttp(settings: Settings, values: OptionValues): HttpConfig {
  const hosts = values["host-whitelist"];
  return {
    isGatewayOn: values["enable-grpc-gateway"],
    areKeysOn: values["enable-http-kv"],
    allowedOrigins: originsOf(values.cors),
    areOriginsGiven: settings.isSet("cors"),
    allowedHosts:
      hosts.length === 0 || hosts.includes(ALL) ? undefined : new Set(hosts.map(lowerCase)),
  };
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
