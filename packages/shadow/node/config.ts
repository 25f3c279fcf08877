/** The member that a shadow is: its configuration, from flags that a member has too. */
import {
  badArguments,
  boolFlag,
  type Flags,
  type FlagValues,
  type Io,
  textFlag,
} from "@quorate/cli";
import { ConfigError, parseInitialCluster } from "@quorate/member";
import { loadConfig, type Notice, type ServerConfig } from "@quorate/server";

/** Flags of a member, with the same meaning, that a shadow hands on. */
export const MEMBER_FLAGS: Flags = {
  name: textFlag("name of the shadow among the members", "shadow"),
  "data-dir": textFlag("directory for its data (default: NAME.quorate)"),
  "wal-dir": textFlag("directory for its log (default: member/wal in the data directory)"),
  "listen-peer-urls": textFlag("URLs to listen on for the other members", "http://localhost:2380"),
  "initial-advertise-peer-urls": textFlag(
    "its peer URLs, by which the other members reach it",
    "http://localhost:2380",
  ),
  "listen-metrics-urls": textFlag("URLs of its page, /report.json and /metrics (default: none)"),
  "peer-cert-file": textFlag("certificate of the peer port"),
  "peer-key-file": textFlag("key of that certificate"),
  "peer-trusted-ca-file": textFlag("CA that verifies the other members"),
  "peer-client-cert-auth": boolFlag("other members need a certificate of that CA"),
  "peer-skip-client-san-verification": boolFlag(
    "do not compare the addresses of other members with the names in their certificates",
  ),
  "cert-file": textFlag("certificate of https URLs of --listen-metrics-urls"),
  "key-file": textFlag("key of that certificate"),
  "heartbeat-interval": textFlag("as on the other members, in ms", "100"),
  "election-timeout": textFlag("as on the other members, in ms", "1000"),
  "max-learners": textFlag("as on the other members", "1"),
  "log-level": textFlag("debug, info, warn or error", "info"),
};

/** Its member has no port for clients, raises no alarm and compacts nothing. */
const FIXED: readonly string[] = [
  "--initial-cluster-state=existing",
  "--quota-backend-bytes=-1",
  "--enable-grpc-gateway=false",
  "--slow-fsync-handover=0",
];

/** The configuration of a shadow, before the members of its cluster are known. Throws Exit. */
export async function shadowConfig(
  flags: FlagValues,
  io: Io,
): Promise<{ readonly config: ServerConfig; readonly notices: readonly Notice[] }> {
  const given = Object.keys(MEMBER_FLAGS)
    .filter((name) => flags.text(name) !== "")
    .map((name) => `--${name}=${flags.text(name)}`);
  const readFile = (path: string): string => Buffer.from(io.readFile(path)).toString();
  try {
    const read = await loadConfig([...given, ...FIXED], {}, readFile);
    if (read.kind !== "run") throw badArguments("the flags run no member");
    const config: ServerConfig = {
      ...read.config,
      listenClientUrls: [],
      listenClientHttpUrls: [],
      advertiseClientUrls: [],
      http: { ...read.config.http, areKeysOn: false, isConsoleOn: false },
      autoCompaction: { mode: "off" },
      corruptCheckMs: 0,
      selfHeal: false,
      frontendThreads: 0,
    };
    return { config, notices: read.notices };
  } catch (error) {
    if (error instanceof ConfigError) throw badArguments(error.message);
    throw error;
  }
}

/** The configuration with the members that it joins. @param members peer URLs by id and its name */
export function joining(
  config: ServerConfig,
  members: readonly { readonly name: string; readonly peerUrls: readonly string[] }[],
): ServerConfig {
  const text = members.flatMap(({ name, peerUrls }) => peerUrls.map((url) => `${name}=${url}`));
  return { ...config, initialCluster: parseInitialCluster(text.join(",")) };
}
