/** --log-rotation-config-json: when the log file is moved away (etcd: embed/config_logging.go). */
import { ConfigError } from "@quorate/member";

/** See LogRotation of @quorate/host/node. */
export interface LogRotationConfig {
  readonly maxFileBytes: number;
  readonly maxAgeMs: number;
  readonly keepFiles: number;
  readonly localTime: boolean;
  readonly compress: boolean;
}

const MIB: number = 1 << 20;
const DAY_MS = 86_400_000;
/** lumberjack's size where none is set. */
const DEFAULT_MAX_MIB = 100;
/** What fits a number of bytes, and of milliseconds. */
const MOST = 1_000_000;

/** The type of each field. */
const FIELDS: Readonly<Record<string, "number" | "boolean">> = {
  maxsize: "number",
  maxage: "number",
  maxbackups: "number",
  localtime: "boolean",
  compress: "boolean",
};

/** Reads the flag's text. Throws ConfigError, with etcd's beginning of the message. */
export function parseLogRotation(text: string): LogRotationConfig {
  const fields = objectOf(text);
  for (const [name, value] of Object.entries(fields)) {
    const type = FIELDS[name];
    if (type === undefined)
      throw invalid(`unknown field ${name}; the fields are ${Object.keys(FIELDS).join(", ")}`);
    if (value !== null && typeof value !== type) throw invalid(`${name} must be a ${type}`);
    const isCount = Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MOST;
    if (typeof value === "number" && !isCount)
      throw invalid(`${name} must be a whole number from 0 to ${MOST}, got ${value}`);
  }
  const count = (name: string): number => Number(fields[name] ?? 0);
  return {
    maxFileBytes: (count("maxsize") || DEFAULT_MAX_MIB) * MIB,
    maxAgeMs: count("maxage") * DAY_MS,
    keepFiles: count("maxbackups"),
    localTime: fields["localtime"] === true,
    compress: fields["compress"] === true,
  };
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = (error as Error).message;
    throw new ConfigError("BadValue", `improperly formatted log rotation config: ${reason}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalid('it must be an object, such as {"maxsize": 100}');
  return value as Readonly<Record<string, unknown>>;
}

function invalid(why: string): ConfigError {
  return new ConfigError("BadValue", `invalid log rotation config: ${why}`);
}
