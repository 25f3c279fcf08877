/** From settings to what the member needs for tokens and for the audit log. */
import {
  type AuthTokenKind,
  ConfigError,
  contradiction,
  expectsProvider,
  isIpAddress,
  type JwtClaimRules,
  type JwtSettings,
  MAX_CLOCK_SKEW_MS,
  parseAuthToken,
  ValueError,
} from "@quorate/member";
import type { OptionValues } from "./options.ts";
import type { AuditConfig } from "./server-config.ts";
import type { Settings } from "./settings.ts";

/** The settings of tokens; undefined for simple ones. Throws ConfigError. */
export function resolveTokens(settings: Settings, values: OptionValues): JwtSettings | undefined {
  const kind = tokenKindOf(values["auth-token"]);
  const clockSkewMs = values["auth-jwt-clock-skew"];
  if (clockSkewMs < 0 || clockSkewMs > MAX_CLOCK_SKEW_MS)
    contradiction("--auth-jwt-clock-skew must be between 0 and 5m");
  const claims: JwtClaimRules = {
    userClaim: values["auth-jwt-user-claim"],
    rolesClaim: values["auth-jwt-roles-claim"],
    audience: values["auth-jwt-audience"],
    issuer: values["auth-jwt-issuer"],
    clockSkewMs,
  };
  if (claims.userClaim === "") contradiction("--auth-jwt-user-claim must not be empty");
  if (kind.kind === "simple") {
    if (clockSkewMs > 0 || expectsProvider(claims))
      contradiction("the options --auth-jwt-... need --auth-token=jwt,...");
    return undefined;
  }
  if (kind.unknown.length > 0) settings.warn("unknown JWT options", { keys: kind.unknown });
  return { ...kind.files, ...claims };
}

function tokenKindOf(text: string): AuthTokenKind {
  try {
    return parseAuthToken(text);
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    return contradiction(`--auth-token: ${error.message}`);
  }
}

/** The proxies that may say whom they serve. Throws ConfigError. */
export function resolveProxies(values: OptionValues): ReadonlySet<string> {
  const proxies = values["trusted-proxies"];
  for (const one of proxies) {
    if (isIpAddress(one) || /^CN=./.test(one)) continue;
    throw new ConfigError(
      "BadValue",
      `invalid value "${proxies.join(",")}" for flag -trusted-proxies: "${one}" is neither an ` +
        "IP address nor CN=NAME",
    );
  }
  return new Set(proxies);
}

/** The settings of the audit log; undefined for none. Throws ConfigError. */
export function resolveAudit(values: OptionValues): AuditConfig | undefined {
  const path = values["audit-log"];
  if (values["audit-read-sampling"] === 0) contradiction("--audit-read-sampling must be >0");
  if (path === "") return undefined;
  return {
    path,
    level: values["audit-level"] as AuditConfig["level"],
    prefixes: values["audit-prefixes"],
    readSampling: values["audit-read-sampling"],
    onFailure: values["audit-on-failure"] as AuditConfig["onFailure"],
    maxFileBytes: values["audit-max-bytes"],
    maxFileAgeMs: values["audit-max-age"],
    keepFiles: values["audit-keep-files"],
  };
}
