/** The options for TLS, for what browsers and hosts may do, and for users' tokens and passwords. */
import { boolOption, listOption, stringOption, uintOption } from "./option.ts";

const client = "client-transport-security";
const peer = "peer-transport-security";

export const securityOptions = {
  "cert-file": stringOption("", "Certificate (PEM) of the client port.", {
    fileKey: `${client}.cert-file`,
  }),
  "key-file": stringOption("", "Private key (PEM) of --cert-file.", {
    fileKey: `${client}.key-file`,
  }),
  "client-cert-auth": boolOption(false, "Require a valid certificate from clients.", {
    fileKey: `${client}.client-cert-auth`,
  }),
  "client-cert-file": stringOption(
    "",
    "Certificate for connections of the member to its own client port. Default: " + "--cert-file.",
    { fileKey: `${client}.client-cert-file` },
  ),
  "client-key-file": stringOption("", "Private key of --client-cert-file.", {
    fileKey: `${client}.client-key-file`,
  }),
  "client-crl-file": stringOption("", "Certificate revocation list for clients (DER or PEM)."),
  "client-cert-allowed-hostname": listOption(
    "",
    "Comma-separated host names or addresses. A client's certificate must be valid for one " +
      "of them.",
    { fileKey: `${client}.allowed-hostname` },
  ),
  "trusted-ca-file": stringOption(
    "",
    "CA certificates (PEM) that verify client certificates. Implies --client-cert-auth.",
    { fileKey: `${client}.trusted-ca-file` },
  ),
  "auto-tls": boolOption(
    false,
    "Serve clients with a self-signed certificate that the member generates. Not with " +
      "--cert-file.",
    { fileKey: `${client}.auto-tls` },
  ),
  "peer-cert-file": stringOption("", "Certificate (PEM) of the peer port.", {
    fileKey: `${peer}.cert-file`,
  }),
  "peer-key-file": stringOption("", "Private key (PEM) of --peer-cert-file.", {
    fileKey: `${peer}.key-file`,
  }),
  "peer-client-cert-auth": boolOption(false, "Require a valid certificate from other members.", {
    fileKey: `${peer}.client-cert-auth`,
  }),
  "peer-client-cert-file": stringOption(
    "",
    "Certificate for connections to other members. Default: --peer-cert-file.",
    { fileKey: `${peer}.client-cert-file` },
  ),
  "peer-client-key-file": stringOption("", "Private key of --peer-client-cert-file.", {
    fileKey: `${peer}.client-key-file`,
  }),
  "peer-trusted-ca-file": stringOption(
    "",
    "CA certificates (PEM) that verify the certificates of members. Implies " +
      "--peer-client-cert-auth.",
    { fileKey: `${peer}.trusted-ca-file` },
  ),
  "peer-cert-allowed-cn": listOption(
    "",
    "Comma-separated common names. A member's certificate must have one of them.",
    { fileKey: `${peer}.allowed-cn` },
  ),
  "peer-cert-allowed-hostname": listOption(
    "",
    "Comma-separated host names or addresses. A member's certificate must be valid for one " +
      "of them.",
    { fileKey: `${peer}.allowed-hostname` },
  ),
  "peer-auto-tls": boolOption(
    false,
    "Use a self-signed certificate that the member generates, and accept any certificate " +
      "of other members. Not with --peer-cert-file.",
    { fileKey: `${peer}.auto-tls` },
  ),
  "peer-skip-client-san-verification": boolOption(
    false,
    "Do not verify that a member's certificate names its address.",
    {
      aliases: ["experimental-peer-skip-client-san-verification"],
      fileKey: `${peer}.skip-client-san-verification`,
    },
  ),
  "peer-crl-file": stringOption("", "Certificate revocation list for members (DER or PEM)."),
  "self-signed-cert-validity": uintOption(
    1,
    "Validity of certificates that the member generates.",
    { unit: "years" },
  ),
  "cipher-suites": listOption(
    "",
    "Comma-separated IANA names of TLS 1.2 cipher suites, most preferred first. Empty: " +
      "Node's default.",
  ),
  cors: listOption(
    "*",
    "Comma-separated origins (scheme://host[:port]) whose pages may call the HTTP " +
      "endpoints (empty or *: all). Without the flag, pages of other sites may not write.",
    { unique: true },
  ),
  "host-whitelist": listOption(
    "*",
    "Comma-separated host names accepted in HTTP requests without TLS (empty or *: all).",
    { unique: true },
  ),
  "tls-min-version": stringOption("TLS1.2", "Minimum TLS version.", {
    allowed: ["", "TLS1.2", "TLS1.3"],
  }),
  "tls-max-version": stringOption(
    "",
    "Maximum TLS version. Empty: the newest that Node supports.",
    { allowed: ["", "TLS1.2", "TLS1.3"] },
  ),
};

export const authOptions = {
  "auth-token": stringOption(
    "simple",
    "Type of auth tokens: 'simple', or 'jwt' with its settings " +
      "(jwt,pub-key=FILE,priv-key=FILE,sign-method=RS512,ttl=10m).",
  ),
  "bcrypt-cost": uintOption(
    10,
    "bcrypt cost of password hashes, 4 to 31. Each step doubles the time to compute a " + "hash.",
    { field: "bcryptCost" },
  ),
  "trusted-proxies": listOption(
    "",
    "Comma-separated proxies whose field x-forwarded-for names the client that logs in: " +
      "their addresses, or CN=NAME of their certificates. Failed logins are counted for that " +
      "client.",
  ),
  "auth-token-ttl": uintOption(300, "Time to live of an unused simple token.", {
    field: "authTokenTtlSeconds",
    unit: "s",
  }),
};
