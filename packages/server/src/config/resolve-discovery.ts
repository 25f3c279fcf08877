/** The --discovery-* flags: where the members of a new cluster find each other. */
import { contradiction, type DiscoveryConfig } from "@quorate/member";
import type { OptionValues } from "./options.ts";

/**
 * The settings, or undefined without --discovery-endpoints. Throws ConfigError; adds a notice for
 * the fallback of earlier etcds.
 */
export function resolveDiscovery(
  settings: { retired(name: string, why: string): void },
  values: OptionValues,
): DiscoveryConfig | undefined {
  if (values["discovery-fallback"] === "proxy")
    settings.retired(
      "discovery-fallback",
      "a failure ends the start: the proxy to fall back to is gone since etcd 3.6",
    );
  const endpoints = values["discovery-endpoints"];
  if (endpoints.length === 0) return undefined;
  if (endpoints.some((endpoint) => endpoint.trim() === ""))
    contradiction("--discovery-endpoints must not contain empty endpoints");
  if (!/^[^/\0]+$/.test(values["discovery-token"]))
    contradiction("--discovery-token must not contain a slash: it is a part of keys");
  const [certFile, keyFile] = [values["discovery-cert"], values["discovery-key"]];
  if ((certFile === "") !== (keyFile === ""))
    contradiction("--discovery-cert and --discovery-key must be set together");
  for (const name of ["discovery-dial-timeout", "discovery-request-timeout"] as const) {
    if (values[name] <= 0) contradiction(`--${name} must be >0`);
  }
  for (const name of ["discovery-keepalive-time", "discovery-keepalive-timeout"] as const) {
    if (values[name] < 0) contradiction(`--${name} must not be negative`);
  }
  return {
    endpoints,
    token: values["discovery-token"],
    dialTimeoutMs: values["discovery-dial-timeout"],
    requestTimeoutMs: values["discovery-request-timeout"],
    keepaliveTimeMs: values["discovery-keepalive-time"],
    keepaliveTimeoutMs: values["discovery-keepalive-timeout"],
    insecureTransport: values["discovery-insecure-transport"],
    insecureSkipVerify: values["discovery-insecure-skip-tls-verify"],
    certFile,
    keyFile,
    caFile: values["discovery-cacert"],
    auth: authOf(values["discovery-user"], values["discovery-password"]),
  };
}

/** etcd asks on the terminal for a password that is missing; a service has none. */
function authOf(user: string, password: string): DiscoveryConfig["auth"] {
  if (user === "") {
    if (password !== "") contradiction("--discovery-password needs --discovery-user");
    return undefined;
  }
  const at = user.indexOf(":");
  if (at >= 0 && password !== "")
    contradiction("--discovery-user contains a password, and --discovery-password is set");
  if (at < 0 && password === "")
    contradiction("--discovery-user needs a password: --discovery-password, or name:password");
  return at < 0
    ? { name: user, password }
    : { name: user.slice(0, at), password: user.slice(at + 1) };
}
