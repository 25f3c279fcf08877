/** The client that quoratectl's global flags configure. */

import {
  badArguments,
  Exit,
  ExitCode,
  type FlagValues,
  type Invocation,
  type Io,
} from "@quorate/cli";
import type { Client } from "@quorate/client";
import type { ClientOptions } from "@quorate/client/node";
import { KVService, MaintenanceService } from "@quorate/proto";
import { asExit } from "./failed-call.ts";
import { globalFlags } from "./global-flags.ts";
import { logIn } from "./login.ts";

/** Servers close connections that ping more often. */
const MIN_KEEPALIVE_MS = 10_000;

const DEFAULT_MAX_REQUEST_BYTES = 2 * 1024 * 1024;

/** A client, with the library functions that commands use. */
export interface ClientKit {
  readonly client: Client;
  /** The client library, for its functions that build requests. */
  readonly build: typeof import("@quorate/client");
  readonly methods: typeof methods;
}

const methods = {
  range: KVService.methods.Range,
  put: KVService.methods.Put,
  deleteRange: KVService.methods.DeleteRange,
  txn: KVService.methods.Txn,
  alarm: MaintenanceService.methods.Alarm,
};

/**
 * The endpoints from SRV records with --discovery-srv, else those of --endpoints.
 */
export async function endpointsOf({ flags, io }: Invocation): Promise<readonly string[]> {
  const domain = flags.string("discovery-srv");
  const given = flags.strings("endpoints").map((endpoint) => endpoint.trim());
  if (domain === "") return given;
  const [{ discoverEndpoints }, { nodeNames }] = await Promise.all([
    import("@quorate/client/node"),
    import("@quorate/host/node"),
  ]);
  const question = {
    domain,
    serviceName: flags.string("discovery-srv-name"),
    takesPlain: flags.bool("insecure-discovery"),
  };
  try {
    const found = await discoverEndpoints(question, nodeNames.lookupSrv, (text) =>
      io.stderr(`${text}\n`),
    );
    return found.length === 0 ? given : found;
  } catch (error) {
    throw new Exit(ExitCode.error, (error as Error).message);
  }
}

/** Options that replace flags when a client is made. */
export interface ClientOverrides {
  readonly timeoutMs?: number;
  /** TLS and credentials for endpoints of another cluster. */
  readonly access?: Access;
}

/** TLS and credentials of a client. */
export interface Access {
  readonly tls: ClientOptions["tls"];
  readonly auth: ClientOptions["auth"];
}

/**
 * The client that the flags describe, for the endpoints of --endpoints or for others. The caller
 * closes it.
 */
export async function clientOf(
  invocation: Invocation,
  endpoints?: readonly string[],
  overrides: ClientOverrides = {},
): Promise<ClientKit> {
  const { flags, io } = invocation;
  if (flags.bool("debug")) printFlags(flags, io);
  const addresses = endpoints ?? (await endpointsOf(invocation));
  if (addresses.length === 0)
    throw new Exit(ExitCode.badConnection, "etcdclient: no available endpoints");
  const { tls, auth } = overrides.access ?? {
    tls: tlsOf(flags, io),
    auth: await authOf(flags, io),
  };
  const options: ClientOptions = {
    endpoints: addresses,
    timeoutMs: overrides.timeoutMs ?? flags.durationMs("command-timeout"),
    dialTimeoutMs: flags.durationMs("dial-timeout"),
    keepaliveTimeMs: Math.max(flags.durationMs("keepalive-time"), MIN_KEEPALIVE_MS),
    keepaliveTimeoutMs: flags.durationMs("keepalive-timeout"),
    maxRequestBytes: flags.int("max-request-bytes") || DEFAULT_MAX_REQUEST_BYTES,
    ...(flags.int("max-recv-bytes") === 0 ? {} : { maxResponseBytes: flags.int("max-recv-bytes") }),
    ...(tls === undefined ? {} : { tls }),
    ...(auth === undefined ? {} : { auth }),
  };
  // A dynamic import: the library takes the longest to load, and help does not need it.
  const build = await import("@quorate/client");
  try {
    return { client: build.connect(options), build, methods };
  } catch (error) {
    const { message } = error as Error;
    if (/key values mismatch/.test(message)) {
      throw badArguments(
        `${flags.string("key")} is not the key of the certificate in ${flags.string("cert")}: use a certificate with its own key`,
      );
    }
    throw badArguments(message);
  }
}

function printFlags(flags: FlagValues, io: Io): void {
  for (const name of Object.keys(globalFlags).sort()) {
    if (name !== "password" && name !== "user")
      io.stderr(`ETCDCTL_${name.toUpperCase().replaceAll("-", "_")}=${flags.text(name)}\n`);
  }
}

/**
 * The certificate files of flags whose names start with `prefix`. Throws Exit if a file cannot be
 * read.
 */
function tlsFiles(
  flags: FlagValues,
  io: Io,
  prefix: string,
): { cert?: Uint8Array; key?: Uint8Array; ca?: Uint8Array } {
  const read = (usual: string): Uint8Array | undefined => {
    const name = prefix + usual;
    const path = flags.string(name);
    if (path === "") return undefined;
    try {
      return io.readFile(path);
    } catch (error) {
      throw badArguments(`open ${path}: ${(error as Error).message}`);
    }
  };
  for (const name of [`${prefix}cert`, `${prefix}key`, `${prefix}cacert`]) {
    if (flags.isSet(name) && flags.string(name) === "")
      throw badArguments(`empty string is passed to --${name} option`);
  }
  if ((flags.string(`${prefix}cert`) === "") !== (flags.string(`${prefix}key`) === "")) {
    throw badArguments(
      `KeyFile and CertFile must both be present[key: ${flags.string(`${prefix}key`)}, cert: ${flags.string(`${prefix}cert`)}]`,
    );
  }
  const cert = read("cert");
  const key = read("key");
  const ca = read("cacert");
  return {
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    ...(ca === undefined ? {} : { ca }),
  };
}

/**
 * The TLS options of the flags; undefined without TLS. Throws Exit if a file cannot be read.
 */
export function tlsOf(flags: FlagValues, io: Io): ClientOptions["tls"] {
  const files = tlsFiles(flags, io, "");
  const insecureSkipVerify = flags.bool("insecure-skip-tls-verify");
  // SRV records can be forged, so certificates must be valid for the domain.
  const serverName = flags.bool("insecure-discovery") ? "" : flags.string("discovery-srv");
  const isAsked =
    files.cert !== undefined ||
    files.ca !== undefined ||
    serverName !== "" ||
    !flags.bool("insecure-transport");
  if (!isAsked && !insecureSkipVerify) return undefined;
  return {
    insecureSkipVerify,
    ...files,
    ...(serverName === "" ? {} : { serverName }),
    // An endpoint without a scheme has no TLS unless a certificate or a flag selects it.
    plainByDefault: !isAsked,
  };
}

/**
 * TLS and credentials of the flags. Prompts for a missing password. Throws Exit.
 */
export async function accessOf({ flags, io }: Invocation): Promise<Access> {
  return { tls: tlsOf(flags, io), auth: await authOf(flags, io) };
}

async function authOf(flags: FlagValues, io: Io): Promise<ClientOptions["auth"]> {
  const token = flags.string("auth-jwt-token");
  if (token !== "") return { token };
  return userOf(flags, io, "", "Password: ");
}

/** The user of flags whose names start with `prefix`. Throws Exit. */
async function userOf(
  flags: FlagValues,
  io: Io,
  prefix: string,
  prompt: string,
): Promise<ClientOptions["auth"]> {
  const user = flags.string(`${prefix}user`);
  if (user === "") return undefined;
  const password = flags.string(`${prefix}password`);
  const file = prefix === "" ? flags.string("password-file") : "";
  if (file !== "") {
    if (password !== "" || user.includes(":"))
      throw badArguments("--password-file is set, and a password too");
    const read = passwordFile(file, io);
    return {
      name: user,
      get password() {
        return read();
      },
    };
  }
  if (password !== "") return { name: user, password };
  const colon = user.indexOf(":");
  if (colon >= 0) return { name: user.slice(0, colon), password: user.slice(colon + 1) };
  try {
    return { name: user, password: await io.askPassword(prompt) };
  } catch (error) {
    throw new Exit(ExitCode.error, (error as Error).message);
  }
}

/** TLS and credentials of the --dest flags. Throws Exit. */
export async function destinationAccess({ flags, io }: Invocation): Promise<Access> {
  const files = tlsFiles(flags, io, "dest-");
  const isAsked =
    files.cert !== undefined || files.ca !== undefined || !flags.bool("dest-insecure-transport");
  return {
    tls: isAsked ? files : undefined,
    auth: await userOf(flags, io, "dest-", "Destination Password: "),
  };
}

/**
 * Runs `task` with a client and closes it. A failed call becomes an Exit with its text.
 * @param failure makes the Exit from the text; default exit code 1
 */
export async function withClient<T>(
  invocation: Invocation,
  task: (kit: ClientKit) => Promise<T>,
  failure?: (message: string) => Exit,
): Promise<T> {
  const kit = await clientOf(invocation);
  try {
    await logIn(kit.client, invocation.io, "any");
    return await task(kit);
  } catch (error) {
    const exit = asExit(error, invocation.io);
    throw failure !== undefined && exit !== error && exit instanceof Exit
      ? failure(exit.message)
      : exit;
  } finally {
    kit.client.close();
  }
}

/** A longer file holds something else than a password. */
export const MAX_PASSWORD_FILE_BYTES = 1024;

/** The password in a file, or what is wrong with it. */
function read(path: string, io: Io): string {
  const bytes = io.readFile(path);
  if (bytes.length > MAX_PASSWORD_FILE_BYTES)
    throw new Error(`it has more than ${MAX_PASSWORD_FILE_BYTES} bytes`);
  const text = Buffer.from(bytes)
    .toString("utf8")
    .replace(/\r?\n$/, "");
  if (text === "") throw new Error("it is empty");
  if (text.includes("\n")) throw new Error("it has more than one line");
  return text;
}

/**
 * A password in a file (--password-file), for programs that run for months: the file is read at
 * each login, so a new password counts without a restart. Where the file cannot be used, the last
 * good password stays, and a line on standard error says so.
 *
 * The password of a file, read now and at each call of the function.
 * @throws Exit if it cannot be read now
 */
export function passwordFile(path: string, io: Io): () => string {
  const problem = (error: unknown): string =>
    `cannot use the password in ${path}: ${(error as Error).message}`;
  let last: string;
  try {
    last = read(path, io);
  } catch (error) {
    throw badArguments(problem(error));
  }
  return () => {
    try {
      last = read(path, io);
    } catch (error) {
      io.stderr(`Warning: ${problem(error)}; the one from before is used\n`);
    }
    return last;
  };
}
