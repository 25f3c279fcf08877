/** Parses peer URLs as etcd's tools do, with etcd's error texts. */
import { Exit, ExitCode } from "@quorate/cli";

function refuse(message: string): never {
  throw new Exit(ExitCode.error, message);
}

/** A peer URL, normalised as member ids need it. Throws Exit. */
export function peerUrl(input: string): string {
  const text = input.trim();
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text)?.[1];
  const lower = scheme?.toLowerCase() ?? "";
  if (scheme === undefined || !["http", "https", "unix", "unixs"].includes(lower)) {
    refuse(`URL scheme must be http, https, unix, or unixs: ${text}`);
  }
  const normalised = lower + text.slice(scheme.length);
  if (lower.startsWith("unix")) return normalised;
  const rest = /^\w+:\/\/((?:\[[^\]]*\]|[^[:/?#@][^:/?#@]*|):([0-9]+))((?:[^0-9].*)?)$/.exec(
    normalised,
  );
  if (rest === null || Number(rest[2]) > 65_535)
    refuse(`URL address does not have the form "host:port": ${text}`);
  if (rest[3] !== "") refuse(`URL must not contain a path: ${text}`);
  return normalised;
}
