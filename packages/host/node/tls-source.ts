/**
 * TLS options that follow their files while a port is open: certificates are renewed, CAs added and
 * removed, revocation lists grow.
 *
 * Changed options are validated first, so a half-written pair of certificate and key changes
 * nothing. Open connections stay; new ones, in and out, use the new options. A bundle may contain
 * an old and a new CA while both are in use.
 */
import { FileSource, type FileSourceDependencies } from "./file-source.ts";
import { parseTlsFiles, type TlsFiles, type TlsOptions } from "./tls.ts";
import { checkTlsOptions, type Expiry } from "./tls-check.ts";

/** The source of a port's TLS options. */
export interface TlsSource {
  /** The options for new connections. */
  readonly current: TlsOptions;
  /**
   * Calls `listener` after each change of `current`. Returns the function that unsubscribes.
   */
  onChange(listener: () => void): () => void;
}

/** Wraps constant options as a source; returns a source unchanged. */
export function tlsSource(tls: TlsOptions | TlsSource): TlsSource {
  return "onChange" in tls ? tls : { current: tls, onChange: () => () => {} };
}

/** The longest file: a revocation list of 100,000 certificates. */
export const MAX_TLS_FILE_BYTES: number = 4 * 1024 * 1024;

/** A source that follows its files. */
export type TlsFileSource = FileSource<TlsOptions>;

const MESSAGES = {
  taken: "TLS files have changed; new connections use them",
  kept: "cannot use changed TLS files; connections keep the previous ones",
};

/** Reads the files, and follows them until `close`. Rejects with the path and the problem. */
export async function followTlsFiles(
  files: TlsFiles,
  deps: FileSourceDependencies,
): Promise<TlsFileSource> {
  const { certFile, keyFile, clientCertFile, clientKeyFile, trustedCaFile, crlFile } = files;
  const named = [certFile, keyFile, clientCertFile, clientKeyFile, trustedCaFile, crlFile];
  return FileSource.open(
    {
      what: "TLS",
      paths: [...new Set(named.filter((path) => path !== undefined && path !== ""))] as string[],
      maxFileBytes: MAX_TLS_FILE_BYTES,
      messages: MESSAGES,
      async parse(contents, pauses) {
        const options = await parseTlsFiles(files, contents, pauses);
        warnOfExpired(await checkTlsOptions(files, options, pauses), deps);
        return options;
      },
    },
    deps,
  );
}

/**
 * An expired certificate does not prevent a start, as in etcd: clocks may be wrong, and a new file
 * is loaded while the member runs.
 */
function warnOfExpired(
  expiries: readonly Expiry[],
  { clock, logger }: FileSourceDependencies,
): void {
  for (const { file, notAfterMs } of expiries) {
    if (notAfterMs > clock.wallMs()) continue;
    logger.warn(
      "a certificate has expired: others refuse connections; replace the file, no restart is needed",
      { file, "not-after": new Date(notAfterMs).toISOString() },
    );
  }
}
