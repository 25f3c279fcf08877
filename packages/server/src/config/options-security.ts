/** The options for TLS, for what browsers and hosts may do, and for users' tokens and passwords. */
import { boolOption, listOption, stringOption, uintOption } from "./option.ts";

const group = "Security";
const auth = "Auth";
const client = "client-transport-security";
const peer = "peer-transport-security";

export const securityOptions = {
  "cert-file": stringOption("", {
    group,
    doc: "Certificate (PEM) of the client port.",
    fileKey: `${client}.cert-file`,
  }),
  "key-file": stringOption("", {
    group,
    doc: "Private key (PEM) of --cert-file.",
    fileKey: `${client}.key-file`,
  }),
  "client-cert-auth": boolOption(false, {
    group,
    doc: "Require a valid certificate from clients.",
    fileKey: `${client}.client-cert-auth`,
  }),
  "client-cert-file": stringOption("", {
    group,
    doc:
      "Certificate for connections of the member to its own client port. Default: " +
      "--cert-file.",
    fileKey: `${client}.client-cert-file`,
  }),
  "client-key-file": stringOption("", {
    group,
    doc: "Private key of --client-cert-file.",
    fileKey: `${client}.client-key-file`,
  }),
  "client-crl-file": stringOption("", {
    group,
    doc: "Certificate revocation list for clients (DER or PEM).",
  }),
  "client-cert-allowed-hostname": listOption("", {
    group,
    doc:
      "Comma-separated host names or addresses. A client's certificate must be valid " +
      "for one of them.",
    fileKey: `${client}.allowed-hostname`,
  }),
  "trusted-ca-file": stringOption("", {
    group,
    doc: "CA certificates (PEM) that verify client certificates. Implies " + "--client-cert-auth.",
    fileKey: `${client}.trusted-ca-file`,
  }),
  "auto-tls": boolOption(false, {
    group,
    doc:
      "Serve clients with a self-signed certificate that the member generates. Not with " +
      "--cert-file.",
    fileKey: `${client}.auto-tls`,
  }),
  "peer-cert-file": stringOption("", {
    group,
    doc: "Certificate (PEM) of the peer port.",
    fileKey: `${peer}.cert-file`,
  }),
  "peer-key-file": stringOption("", {
    group,
    doc: "Private key (PEM) of --peer-cert-file.",
    fileKey: `${peer}.key-file`,
  }),
  "peer-client-cert-auth": boolOption(false, {
    group,
    doc: "Require a valid certificate from other members.",
    fileKey: `${peer}.client-cert-auth`,
  }),
  "peer-client-cert-file": stringOption("", {
    group,
    doc: "Certificate for connections to other members. Default: --peer-cert-file.",
    fileKey: `${peer}.client-cert-file`,
  }),
  "peer-client-key-file": stringOption("", {
    group,
    doc: "Private key of --peer-client-cert-file.",
    fileKey: `${peer}.client-key-file`,
  }),
  "peer-trusted-ca-file": stringOption("", {
    group,
    doc:
      "CA certificates (PEM) that verify the certificates of members. Implies " +
      "--peer-client-cert-auth.",
    fileKey: `${peer}.trusted-ca-file`,
  }),
  "peer-cert-allowed-cn": listOption("", {
    group,
    doc: "Comma-separated common names. A member's certificate must have one of them.",
    fileKey: `${peer}.allowed-cn`,
  }),
  "peer-cert-allowed-hostname": listOption("", {
    group,
    doc:
      "Comma-separated host names or addresses. A member's certificate must be valid " +
      "for one of them.",
    fileKey: `${peer}.allowed-hostname`,
  }),
  "peer-auto-tls": boolOption(false, {
    group,
    doc:
      "Use a self-signed certificate that the member generates, and accept any " +
      "certificate of other members. Not with --peer-cert-file.",
    fileKey: `${peer}.auto-tls`,
  }),
  "peer-skip-client-san-verification": boolOption(false, {
    group,
    doc: "Do not verify that a member's certificate names its address.",
    aliases: ["experimental-peer-skip-client-san-verification"],
    fileKey: `${peer}.skip-client-san-verification`,
  }),
  "peer-crl-file": stringOption("", {
    group,
    doc: "Certificate revocation list for members (DER or PEM).",
  }),
  "self-signed-cert-validity": uintOption(1, {
    group,
    unit: "years",
    doc: "Validity of certificates that the member generates.",
  }),
  "cipher-suites": listOption("", {
    group,
    doc:
      "Comma-separated IANA names of TLS 1.2 cipher suites, most preferred first. " +
      "Empty: Node's default.",
  }),
  cors: listOption(
    "*",
    {
      group,
      doc:
        "Comma-separated origins (scheme://host[:port]) whose pages may call the HTTP endpoints " +
        "(empty or *: all). Without the flag, pages of other sites may not write.",
    },
    true,
  ),
  "host-whitelist": listOption(
    "*",
    {
      group,
      doc: "Comma-separated host names accepted in HTTP requests without TLS (empty or *: all).",
    },
    true,
  ),
  "tls-min-version": stringOption("TLS1.2", { group, doc: "Minimum TLS version." }, [
    "",
    "TLS1.2",
    "TLS1.3",
  ]),
  "tls-max-version": stringOption(
    "",
    { group, doc: "Maximum TLS version. Empty: the newest that Node supports." },
    ["", "TLS1.2", "TLS1.3"],
  ),

  "auth-token": stringOption("simple", {
    group: auth,
    doc:
      "Type of auth tokens: 'simple', or 'jwt' with its settings " +
      "(jwt,pub-key=FILE,priv-key=FILE,sign-method=RS512,ttl=10m).",
  }),
  "bcrypt-cost": uintOption(10, {
    group: auth,
    field: "bcryptCost",
    doc:
      "bcrypt cost of password hashes, 4 to 31. Each step doubles the time to compute a " + "hash.",
  }),
  "trusted-proxies": listOption("", {
    group: auth,
    doc:
      "Comma-separated proxies whose field x-forwarded-for names the client that logs in: their " +
      "addresses, or CN=NAME of their certificates. Failed logins are counted for that client.",
  }),
  "auth-token-ttl": uintOption(300, {
    group: auth,
    field: "authTokenTtlSeconds",
    unit: "s",
    doc: "Time to live of an unused simple token.",
  }),
};
