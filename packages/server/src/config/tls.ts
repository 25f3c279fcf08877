/** TLS settings of one side: from options to a TlsConfig, with etcd's checks. */

import type { MemberUrl } from "@quorate/member";
import { ConfigError } from "@quorate/member";
import { quoteText } from "@quorate/proto";
import type { OptionValues } from "./options.ts";
import type { TlsConfig } from "./server-config.ts";

/** TLS 1.2 suites: Go's and IANA's name to OpenSSL's. */
const suites: ReadonlyMap<string, string> = new Map([
  ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"],
  ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
  ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"],
  ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"],
  ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"],
  ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"],
  ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA-CHACHA20-POLY1305"],
  ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"],
  ["TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256"],
  ["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"],
  ["TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"],
  ["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"],
  ["TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA"],
  ["TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"],
  ["TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"],
  ["TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"],
  ["TLS_RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256"],
  ["TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"],
  ["TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"],
]);

/** TLS 1.3 suites: their names are the same everywhere, and Node takes them in the same list. */
const suites13 = new Set([
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
]);

/**
 * A cipher suite list for Node from IANA names. TLS 1.3 suites that are not named stay on, since
 * they cannot be chosen in Go either.
 */
export function nodeCiphers(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const chosen13 = names.filter((name) => suites13.has(name));
  const chosen12 = names
    .filter((name) => !suites13.has(name))
    .map((name) => {
      const openSslName = suites.get(name);
      if (openSslName === undefined)
        throw new ConfigError("BadValue", `unexpected TLS cipher suite ${quoteText(name)}`);
      return openSslName;
    });
  return [...(chosen13.length > 0 ? chosen13 : suites13), ...chosen12].join(":");
}

const nodeVersions = { "TLS1.2": "TLSv1.2", "TLS1.3": "TLSv1.3" } as const;

function versions(values: OptionValues): Pick<TlsConfig, "minVersion" | "maxVersion"> {
  // The options admit only these and the empty text.
  const min = values["tls-min-version"] as keyof typeof nodeVersions | "";
  const max = values["tls-max-version"] as keyof typeof nodeVersions | "";
  if (min === "TLS1.3" && max === "TLS1.2") {
    throw new ConfigError(
      "Contradiction",
      `min version (${min}) is greater than max version (${max})`,
    );
  }
  if (min === "TLS1.3" && values["cipher-suites"].length > 0) {
    throw new ConfigError(
      "Contradiction",
      "cipher suites cannot be configured when only TLS1.3 is enabled",
    );
  }
  return {
    minVersion: nodeVersions[min === "" ? "TLS1.2" : min],
    maxVersion: nodeVersions[max === "" ? "TLS1.3" : max],
  };
}

/** The text of a file, or a throw with the system's reason. */
export type ReadFile = (path: string) => string;

function readTlsFile(path: string, flag: string, readFile: ReadFile): string {
  try {
    return readFile(path);
  } catch (error) {
    const { message } = error as Error;
    // Keys are for one user, and directories of certificates made by root are for root.
    const next =
      message === "permission denied"
        ? "; the user that runs the member must be able to read it (quorate-certs --owner USER)"
        : "";
    throw new ConfigError("BadFile", `--${flag}: cannot read ${path}: ${message}${next}`);
  }
}

function checkPem(path: string, flag: string, readFile: ReadFile): void {
  if (!readTlsFile(path, flag, readFile).includes("-----BEGIN "))
    throw new ConfigError("BadFile", `--${flag}: ${path} is not a PEM file`);
}

/**
 * etcd takes revocation lists in DER, which begins with a SEQUENCE (0x30, the character 0); PEM is
 * as good.
 */
function checkRevocationList(path: string, flag: string, readFile: ReadFile): void {
  const text = readTlsFile(path, flag, readFile);
  if (text.startsWith("0") || text.includes("-----BEGIN X509 CRL-----")) return;
  throw new ConfigError(
    "BadFile",
    `--${flag}: ${path} is no revocation list, neither in DER nor in PEM`,
  );
}

type Side = "client" | "peer";

/** The settings of one side by their names in `OptionValues`. */
function sideOf(side: Side, values: OptionValues) {
  return side === "client"
    ? {
        cert: values["cert-file"],
        key: values["key-file"],
        clientCert: values["client-cert-file"],
        clientKey: values["client-key-file"],
        ca: values["trusted-ca-file"],
        crl: values["client-crl-file"],
        clientCertAuth: values["client-cert-auth"],
        commonNames: [],
        hostnames: values["client-cert-allowed-hostname"],
        skipSan: false,
        prefix: "",
        crlFlag: "client-crl-file",
        autoTls: values["auto-tls"],
        hostUrls: [...values["listen-client-urls"], ...values["listen-client-http-urls"]],
        serverName: "",
      }
    : {
        cert: values["peer-cert-file"],
        key: values["peer-key-file"],
        clientCert: values["peer-client-cert-file"],
        clientKey: values["peer-client-key-file"],
        ca: values["peer-trusted-ca-file"],
        crl: values["peer-crl-file"],
        clientCertAuth: values["peer-client-cert-auth"],
        commonNames: values["peer-cert-allowed-cn"],
        hostnames: values["peer-cert-allowed-hostname"],
        skipSan: values["peer-skip-client-san-verification"],
        prefix: "peer-",
        crlFlag: "peer-crl-file",
        autoTls: values["peer-auto-tls"],
        hostUrls: values["listen-peer-urls"],
        // As in etcd: with the system's authorities any name could be vouched for.
        serverName: values["peer-trusted-ca-file"] === "" ? values["discovery-srv"] : "",
      };
}

/** What the settings of a side need beside the options. */
export interface TlsSurroundings {
  readonly readFile: ReadFile;
  readonly dataDir: string;
  warn(message: string): void;
}

/** The settings of a side that makes its certificate itself. */
function selfMadeTls(side: Side, values: OptionValues, dataDir: string): TlsConfig {
  const { prefix, clientCertAuth, ca, crl, hostUrls } = sideOf(side, values);
  if (clientCertAuth || ca !== "" || crl !== "") {
    const other = clientCertAuth
      ? `${prefix}client-cert-auth`
      : ca !== ""
        ? `${prefix}trusted-ca-file`
        : `${side}-crl-file`;
    throw new ConfigError(
      "Contradiction",
      `--${prefix}auto-tls cannot be used with --${other}: no authority stands behind certificates that members make for themselves; ` +
        `give --${prefix}cert-file and --${prefix}key-file`,
    );
  }
  const validityYears = values["self-signed-cert-validity"];
  if (validityYears === 0)
    throw new ConfigError(
      "BadValue",
      "selfSignedCertValidity is invalid,it should be greater than 0",
    );
  const dir = `${dataDir}/fixtures/${side}`;
  const [certFile, keyFile] = [`${dir}/cert.pem`, `${dir}/key.pem`];
  const hosts = hostUrls.map(({ host }) => host).filter((host) => host !== "");
  return {
    certFile,
    keyFile,
    clientCertFile: "",
    clientKeyFile: "",
    trustedCaFile: "",
    crlFile: "",
    requireClientCert: false,
    clientCertAuth: false,
    allowedCommonNames: [],
    allowedHostnames: [],
    skipClientSanVerify: false,
    ciphers: nodeCiphers(values["cipher-suites"]),
    ...versions(values),
    serverName: "",
    selfCert: { dir, certFile, keyFile, hosts, validityYears },
  };
}

/**
 * The TLS settings of a side, or undefined if it has no certificate. `urls` are those that the side
 * listens on; a https URL without a certificate is refused, and the files are looked at (they exist
 * and are PEM) where a URL needs them. Throws ConfigError.
 */
export function resolveTls(
  side: Side,
  values: OptionValues,
  urls: readonly MemberUrl[],
  { readFile, dataDir, warn }: TlsSurroundings,
): TlsConfig | undefined {
  const shared = versions(values);
  const ciphers = nodeCiphers(values["cipher-suites"]);
  const s = sideOf(side, values);
  if (s.autoTls) {
    if (s.cert === "" && s.key === "") return selfMadeTls(side, values, dataDir);
    warn(`ignoring ${side} auto TLS since certs given`);
  }
  const secure = urls.find((url) => url.scheme === "https" || url.scheme === "unixs");
  if (s.cert === "" && s.key === "") {
    if (secure !== undefined) {
      if (values["listen-metrics-urls"].includes(secure)) {
        const wanted =
          "client TLS key/cert (--cert-file, --key-file) must be provided for metrics secure url";
        throw new ConfigError("Contradiction", `${wanted} ${secure.text}`);
      }
      throw new ConfigError(
        "Contradiction",
        `TLS key/cert (--${s.prefix}cert-file, --${s.prefix}key-file) must be provided for ${side} url ${secure.text} with HTTPS scheme`,
      );
    }
    return undefined;
  }
  if (s.cert === "" || s.key === "") {
    const flags = `give both --${s.prefix}cert-file and --${s.prefix}key-file`;
    throw new ConfigError(
      "Contradiction",
      `KeyFile and CertFile must both be present[key: ${s.key}, cert: ${s.cert}]: ${flags}`,
    );
  }
  if ((s.clientCert === "") !== (s.clientKey === "")) {
    throw new ConfigError(
      "Contradiction",
      `ClientKeyFile and ClientCertFile must both be present or both absent: key: ${s.clientKey}, cert: ${s.clientCert}]`,
    );
  }
  if (s.commonNames.length > 0 && s.hostnames.length > 0) {
    const list = (names: readonly string[]): string => `[${names.map(quoteText).join(" ")}]`;
    throw new ConfigError(
      "Contradiction",
      `AllowedCNs and AllowedHostnames are mutually exclusive (cns=${list(s.commonNames)}, hostnames=${list(s.hostnames)})`,
    );
  }
  // Clients' plain URLs do not need the files; the peer side needs them in any case, to connect to
  // others.
  if (secure !== undefined || side === "peer") {
    checkPem(s.cert, `${s.prefix}cert-file`, readFile);
    checkPem(s.key, `${s.prefix}key-file`, readFile);
    if (s.clientCert !== "") {
      checkPem(s.clientCert, `${s.prefix}client-cert-file`, readFile);
      checkPem(s.clientKey, `${s.prefix}client-key-file`, readFile);
    }
    if (s.ca !== "") checkPem(s.ca, `${s.prefix}trusted-ca-file`, readFile);
    if (s.crl !== "") checkRevocationList(s.crl, s.crlFlag, readFile);
  }
  return {
    certFile: s.cert,
    keyFile: s.key,
    clientCertFile: s.clientCert,
    clientKeyFile: s.clientKey,
    trustedCaFile: s.ca,
    crlFile: s.crl,
    requireClientCert: s.clientCertAuth || s.ca !== "",
    clientCertAuth: s.clientCertAuth,
    allowedCommonNames: s.commonNames,
    allowedHostnames: s.hostnames,
    skipClientSanVerify: s.skipSan,
    ciphers,
    ...shared,
    serverName: s.serverName,
    selfCert: undefined,
  };
}
