/**
 * Command lines for the operator. They carry the flags with which the doctor reached the cluster,
 * and run unchanged in the shell that it was started from. A variable set there replaces the flag,
 * because both together are refused.
 */
import type { FlagValues } from "@quorate/cli";
import { shellWord } from "../observe/text.ts";

/**
 * Global flags for the connection, except --endpoints. Passwords and tokens are not among them:
 * they are never printed.
 */
const ACCESS_FLAGS = [
  "cacert",
  "cert",
  "key",
  "insecure-transport",
  "insecure-skip-tls-verify",
] as const;

/**
 * Makes command lines of quoratectl from the words of a command and an endpoint ("" for the shell's
 * own).
 */
export type CommandMaker = (words: string, endpoint: string) => string;

export function commandMaker(
  flags: FlagValues,
  env: Readonly<Record<string, string | undefined>>,
): CommandMaker {
  const isInEnv = (flag: string): boolean => (env[variable(flag)] ?? "") !== "";
  const access = ACCESS_FLAGS.filter((flag) => flags.isSet(flag) && !isInEnv(flag)).map(
    (flag) => `--${flag}=${shellWord(flags.text(flag))}`,
  );
  const user = flags.string("user");
  // The command prompts for the password.
  if (user !== "" && !isInEnv("user"))
    access.push(`--user=${shellWord(user.replace(/:.*$/s, ""))}`);
  return (words, endpoint) => {
    const before: string[] = [];
    const after: string[] = [];
    if (endpoint === "") {
      if (flags.isSet("endpoints") && !isInEnv("endpoints"))
        after.push(`--endpoints=${shellWord(flags.strings("endpoints").join(","))}`);
    } else {
      if (isInEnv("discovery-srv")) before.push(`${variable("discovery-srv")}=`);
      if (isInEnv("endpoints")) before.push(`${variable("endpoints")}=${shellWord(endpoint)}`);
      else after.push(`--endpoints=${shellWord(endpoint)}`);
    }
    return [...before, "quoratectl", ...after, ...access, words].join(" ");
  };
}

function variable(flag: string): string {
  return `ETCDCTL_${flag.toUpperCase().replaceAll("-", "_")}`;
}
