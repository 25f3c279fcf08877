/**
 * Structured logs. Messages are constant texts; variable values are in fields with etcd's names
 * (kebab-case).
 */

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Fields of a log line. bigint ids are printed as unpadded hexadecimal by the caller. */
export type LogFields = Readonly<
  Record<string, string | number | boolean | undefined | readonly string[] | readonly number[]>
>;

/** Where a member writes its log. */
export interface Logger {
  debug(msg: string, fields?: LogFields): void;
  info(msg: string, fields?: LogFields): void;
  warn(msg: string, fields?: LogFields): void;
  error(msg: string, fields?: LogFields): void;
  /**
   * A logger that adds `fields` to each line; `caller` names the package and file, such as
   * "raft/node".
   */
  child(caller: string, fields?: LogFields): Logger;
}

/** A logger that drops everything. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child() {
    return silentLogger;
  },
};
