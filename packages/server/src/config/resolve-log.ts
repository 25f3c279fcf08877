/** Where a member's log goes, and in which form. */
import { contradiction } from "@quorate/member";
import { parseLogRotation } from "./log-rotation.ts";
import type { OptionValues } from "./options.ts";
import type { LogConfig, LogOutput } from "./server-config.ts";
import type { Settings } from "./settings.ts";

/** Throws ConfigError. */
export function resolveLog(settings: Settings, values: OptionValues): LogConfig {
  const names = values["log-outputs"].length === 0 ? ["default"] : values["log-outputs"];
  if (names.length > 1 && names.includes("default"))
    contradiction('multi logoutput for "default" is not supported yet');
  if (names.includes("")) contradiction("--log-outputs must not contain an empty output");
  const outputs: LogOutput[] = [];
  for (const name of names) {
    if (name === "systemd/journal") {
      settings.warn("logs go to standard error, which systemd puts into the journal", {
        "log-output": name,
      });
    }
    const kind =
      name === "stdout"
        ? "stdout"
        : ["default", "stderr", "systemd/journal"].includes(name)
          ? "stderr"
          : "file";
    if (kind === "file") outputs.push({ kind, path: name });
    else if (!outputs.some((output) => output.kind === kind)) outputs.push({ kind });
  }
  if (values["enable-log-rotation"]) {
    if (outputs.filter((output) => output.kind === "file").length !== 1) {
      contradiction(
        "--log-outputs requires a single file path when --log-rotate-config-json is defined",
      );
    }
  }
  const rotation = values["enable-log-rotation"]
    ? parseLogRotation(values["log-rotation-config-json"])
    : undefined;
  const level = values["log-level"];
  return {
    level: level === "panic" || level === "dpanic" ? "fatal" : level,
    format: settings.isSet("log-format") ? values["log-format"] : "auto",
    outputs,
    rotation,
  };
}
