/**
 * Starts a member in this process, for tests and for programs that keep their state in it:
 *
 *     await using member = await startMember();
 *     const client = connect({ endpoints: member.endpoints });
 */
import { CALLBACK, checkOptions, FLAG, OBJECT, type Shape, TEXT, TEXTS } from "@quorate/host";
import { launch, type MemberOptions, type RunningMember } from "./launch.ts";

const MEMBER_SHAPE: Shape<MemberOptions> = {
  dataDir: TEXT,
  config: OBJECT,
  flags: TEXTS,
  isPrivate: FLAG,
  ownThread: FLAG,
  maxHeldShare: {
    name: "a number above 0",
    is: (value) => typeof value === "number" && value > 0 && value < Number.POSITIVE_INFINITY,
  },
  logger: {
    name: "a Logger, with debug, info, warn, error and child",
    is: (value) =>
      OBJECT.is(value) &&
      ["debug", "info", "warn", "error", "child"].every((name) =>
        CALLBACK.is((value as Record<string, unknown>)[name]),
      ),
  },
};

/**
 * Starts a member; resolves when it serves. A member that is a cluster of its own is ready then.
 * Rejects with ConfigError for a configuration that no member starts with, and with Error if an
 * address is taken, a file cannot be read, or the member was removed from its cluster; then nothing
 * is left behind but a directory that was given.
 */
export async function startMember(options: MemberOptions = {}): Promise<RunningMember> {
  checkOptions("startMember", options, MEMBER_SHAPE);
  if (options.ownThread !== true) return launch(options);
  const { startThread } = await import("./member-thread.ts");
  return startThread(options);
}
