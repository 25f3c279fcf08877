/** Options without effect. */

import { ConfigError } from "@quorate/member";
import { defined } from "@quorate/proto";
import { type OptionName, type OptionValues, options } from "./options.ts";
import type { Settings } from "./settings.ts";

/**
 * Warns of options that were changed and have no effect, and refuses those that may not be ignored.
 */
export function checkStages(settings: Settings, values: OptionValues): void {
  for (const [name, option] of options) {
    const { stage } = option;
    if (stage.kind === "effective" || !settings.isSet(name) || isDefault(name, values)) continue;
    if (stage.kind === "refused" && stage.harmless.some((text) => isValue(name, values, text)))
      continue;
    if (stage.kind === "refused")
      throw new ConfigError("NotAvailable", `--${name} cannot be used: ${stage.why}`);
    settings.warn("option has no effect", { option: name, reason: stage.why });
  }
}

function isDefault(name: OptionName, values: OptionValues): boolean {
  return isValue(name, values, defined(options.get(name), "the option").defaultText);
}

/** Whether an option has the value that a text stands for. */
function isValue(name: OptionName, values: OptionValues, text: string): boolean {
  return (
    JSON.stringify(values[name]) ===
    JSON.stringify(defined(options.get(name), "the option").parse(text))
  );
}
