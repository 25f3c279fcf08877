/** The options for TLS, for what browsers and hosts may do, and for users' tokens and passwords. */
import { boolOption, listOption, refused, stringOption, uintOption } from "./option.ts";

const group = "Security";
const auth = "Auth";
const client = "client-transport-security";
const peer = "peer-transport-security";

export const securityOptions = {
  "cert-file": stringOption("", {
    group,
    doc: "The certificate (PEM) that the server shows to clients.",
    fileKey: `${client}.cert-file`,
  }),
  "key-file": stringOption("", {
    group,
    doc: "The private key (PEM) of --cert-file.",
    fileKey: `${client}.key-file`,
  }),
  "client-cert-auth": boolOption(false, {
    group,
    doc: "Ask clients for a certificate and refuse those without a valid one.",
    fileKey: `${client}.client-cert-auth`,
  }),
  "client-cert-file": stringOption("", {
    group,
    doc: "The certificate to show where the server is itself a client of its own port; --cert-file if not given.",
    fileKey: `${client}.client-cert-file`,
  }),
  "client-key-file": stringOption("", {
    group,
    doc: "The private key of --client-cert-file.",
    fileKey: `${client}.client-key-file`,
  }),
  "client-crl-file": stringOption("", {
    group,
    doc: "A list of revoked client certificates (DER or PEM).",
  }),
  "client-cert-allowed-hostname": listOption("", {
    group,
    doc: "Comma-separated host names or addresses; a client's certificate must be good for one of them.",
    fileKey: `${client}.allowed-hostname`,
  }),
  "trusted-ca-file": stringOption("", {
    group,
    doc: "The CA certificates (PEM) that clients' certificates must come from. Giving it makes client certificates required.",
    fileKey: `${client}.trusted-ca-file`,
  }),
  "auto-tls": boolOption(false, {
    group,
    doc: "Serve clients with a certificate that the server makes for itself, where no --cert-file is given.",
    fileKey: `${client}.auto-tls`,
  }),
  "peer-cert-file": stringOption("", {
    group,
    doc: "The certificate (PEM) that the member shows to other members.",
    fileKey: `${peer}.cert-file`,
  }),
  "peer-key-file": stringOption("", {
    group,
    doc: "The private key (PEM) of --peer-cert-file.",
    fileKey: `${peer}.key-file`,
  }),
  "peer-client-cert-auth": boolOption(false, {
    group,
    doc: "Ask other members for a certificate and refuse those without a valid one.",
    fileKey: `${peer}.client-cert-auth`,
  }),
  "peer-client-cert-file": stringOption("", {
    group,
    doc: "The certificate to show when this member connects to another; --peer-cert-file if not given.",
    fileKey: `${peer}.client-cert-file`,
  }),
  "peer-client-key-file": stringOption("", {
    group,
    doc: "The private key of --peer-client-cert-file.",
    fileKey: `${peer}.client-key-file`,
  }),
  "peer-trusted-ca-file": stringOption("", {
    group,
    doc: "The CA certificates (PEM) that other members' certificates must come from. Giving it makes member certificates required.",
    fileKey: `${peer}.trusted-ca-file`,
  }),
  "peer-cert-allowed-cn": listOption("", {
    group,
    doc: "Comma-separated common names; a member's certificate must have one of them.",
    fileKey: `${peer}.allowed-cn`,
  }),
  "peer-cert-allowed-hostname": listOption("", {
    group,
    doc: "Comma-separated host names or addresses; a member's certificate must be good for one of them.",
    fileKey: `${peer}.allowed-hostname`,
  }),
  "peer-auto-tls": boolOption(false, {
    group,
    doc: "Talk to members with a certificate that the server makes for itself, where no --peer-cert-file is given, and take any of theirs.",
    fileKey: `${peer}.auto-tls`,
  }),
  "peer-skip-client-san-verification": boolOption(false, {
    group,
    doc: "Do not compare a connecting member's address with the names in its certificate.",
    aliases: ["experimental-peer-skip-client-san-verification"],
    fileKey: `${peer}.skip-client-san-verification`,
  }),
  "peer-crl-file": stringOption("", {
    group,
    doc: "A list of revoked member certificates (DER or PEM).",
  }),
  "self-signed-cert-validity": uintOption(1, {
    group,
    unit: "years",
    doc: "How long certificates that the server makes for itself are valid.",
  }),
  "cipher-suites": listOption("", {
    group,
    doc: "Comma-separated TLS 1.2 cipher suites, by their IANA names, in order of preference. Empty leaves the choice to Node.",
  }),
  cors: stringOption("*", {
    group,
    doc: "Comma-separated origins from which browsers may call the HTTP endpoints (empty or * allows all).",
    stage: refused(
      "origins are not told apart yet, so browsers of other sites would not be kept out as it says",
      ["", "*"],
    ),
  }),
  "host-whitelist": listOption(
    "*",
    {
      group,
      doc: "Comma-separated host names that HTTP requests without TLS may be addressed to (empty or * allows all).",
      stage: refused(
        "the Host header is not looked at yet, so requests to other hosts would not be kept out as it says",
        ["", "*"],
      ),
    },
    true,
  ),
  "tls-min-version": stringOption(
    "TLS1.2",
    { group, doc: "The oldest TLS version that is spoken." },
    ["", "TLS1.2", "TLS1.3"],
  ),
  "tls-max-version": stringOption(
    "",
    { group, doc: "The newest TLS version that is spoken. Empty means the newest that Node has." },
    ["", "TLS1.2", "TLS1.3"],
  ),

  "auth-token": stringOption("simple", {
    group: auth,
    doc: "What users' tokens are: 'simple', or 'jwt' with its settings (jwt,pub-key=FILE,priv-key=FILE,sign-method=RS512,ttl=10m).",
  }),
  "bcrypt-cost": uintOption(10, {
    group: auth,
    doc: "How hard password hashes are to compute, 4 to 31; each step doubles the work.",
  }),
  "auth-token-ttl": uintOption(300, {
    group: auth,
    unit: "s",
    doc: "How long a simple token lives without being used.",
  }),
};
