import { CodedError } from "@quorate/proto";

/** Why a configuration was refused. */
export type ConfigErrorCode = "BadFlag" | "BadValue" | "BadFile" | "Contradiction" | "NotAvailable";

/** A configuration that no member can start with. It is thrown before anything is written. */
export class ConfigError extends CodedError<ConfigErrorCode> {
  /**
   * What the process ends with: 2 for a command line that cannot be read (as Go's flag package
   * does), 1 for the rest.
   */
  readonly exitCode: number;

  constructor(
    code: ConfigErrorCode,
    message: string,
    exitCode: number = code === "BadFlag" ? 2 : 1,
  ) {
    super("ConfigError", code, message);
    this.exitCode = exitCode;
  }
}
