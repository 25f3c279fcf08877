/**
 * Command lines for people to run. They carry the flags by which the doctor itself got to the
 * cluster, and run as they stand in the shell that it was started from: a variable that is set
 * there takes the place of the flag, because both together are refused.
 */
import type { FlagValues } from "../flags.ts";
import { shellWord } from "../observe/text.ts";

/**
 * Global flags that lead to a cluster, but for the endpoints. Passwords and tokens are not among
 * them: they are not printed.
 */
const ACCESS_FLAGS = [
  "cacert",
  "cert",
  "key",
  "insecure-transport",
  "insecure-skip-tls-verify",
] as const;

/**
 * Makes command lines of quoratectl: the words of the command, asked at an endpoint ("" for those
 * of the shell's own).
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
  // The password is asked for.
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
