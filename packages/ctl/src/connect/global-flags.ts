/** quoratectl's global flags. */
import { boolFlag, durationFlag, type Flags, intFlag, listFlag, textFlag } from "@quorate/cli";

export const globalFlags: Flags = {
  endpoints: listFlag("endpoints of the members", "127.0.0.1:2379"),
  debug: boolFlag("print the flags as variables"),
  "write-out": textFlag("output format: fields, json, protobuf, simple, table", "simple", {
    shorthand: "w",
    values: ["fields", "json", "protobuf", "simple", "table"],
  }),
  hex: boolFlag("print keys, values and ids in hexadecimal"),
  "dial-timeout": durationFlag("timeout of connecting to a member", "2s"),
  "command-timeout": durationFlag("timeout of a short command", "5s"),
  "keepalive-time": durationFlag(
    "silence after which a connection is pinged (less than 10s counts as 10s, as in etcdctl)",
    "2s",
  ),
  "keepalive-timeout": durationFlag("timeout of a ping", "6s"),
  "max-request-bytes": intFlag("largest request in bytes (0 for 2 MiB)"),
  "max-recv-bytes": intFlag("largest response in bytes (0 for no limit)"),
  "insecure-transport": boolFlag(
    "connect without TLS, unless an endpoint's scheme or a certificate selects it",
    "true",
  ),
  "insecure-discovery": boolFlag("accept SRV records of endpoints without TLS", "true"),
  "insecure-skip-tls-verify": boolFlag("accept any server certificate (tests only)"),
  cert: textFlag("client certificate"),
  key: textFlag("private key of the client certificate"),
  cacert: textFlag("CA that verifies the members' certificates"),
  "auth-jwt-token": textFlag("authentication token, instead of a user and password"),
  user: textFlag("user as name[:password]; prompts for a missing password"),
  password: textFlag("password of the user"),
  "password-file": textFlag("file with the password of the user, read at each login"),
  "discovery-srv": textFlag("domain whose SRV records list the endpoints", "", { shorthand: "d" }),
  "discovery-srv-name": textFlag("suffix of the SRV service name"),
};
