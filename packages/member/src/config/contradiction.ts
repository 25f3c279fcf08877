/** Errors of settings that are wrong together. */
import { ConfigError } from "./errors.ts";
import { ValueError } from "./values.ts";

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
