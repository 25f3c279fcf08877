/** Errors of settings: of one that is wrong, and of several that are wrong together. */
import { CodedError } from "@quorate/proto";
import { ValueError } from "./values.ts";

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

/** Throws a ConfigError of code Contradiction. */
export function contradiction(message: string): never {
  throw new ConfigError("Contradiction", message);
}

/** Runs `check`; a ValueError of it becomes a ConfigError whose text begins with `where`. */
export function checked(
  where: string,
  code: "BadValue" | "Contradiction",
  check: () => void,
): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    throw new ConfigError(code, `${where}${error.message}`);
  }
}
