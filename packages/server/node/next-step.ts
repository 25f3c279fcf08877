/**
 * What an operator does next about an error of the system that ends a member, or keeps it from
 * starting.
 */

/** Words of the system's errors, as its own messages and LevelDB's have them. */
const STEPS: readonly (readonly [
  pattern: RegExp,
  step: (match: RegExpExecArray, user: string) => string,
])[] = [
  [
    /no space left on (?:the |this )?(?:disk|device)|ENOSPC/i,
    () =>
      "free space on the disk of the data directory (df -h, df -i) and start the member again: what was acknowledged is in its log. " +
      "A quota (--quota-backend-bytes) well below the size of the disk keeps this from happening",
  ],
  [
    /EDQUOT|disk quota exceeded/i,
    (_match, user) =>
      `raise the file system's quota of ${user} (quota -s) and start the member again: what was acknowledged is in its log`,
  ],
  [
    /permission denied|EACCES|EPERM/i,
    (_match, user) =>
      `the member runs as ${user}, who must own its files: ls -ld on the path and the directories above it, then chown -R ` +
      "(systemd: User= in the unit)",
  ],
  [
    /read-only file system|EROFS/i,
    () =>
      "mount the file system for writing; where it has become read-only by itself, look at the disk: dmesg | tail",
  ],
  [
    /too many open files|EMFILE|ENFILE/i,
    () => "raise the limit of open files: LimitNOFILE in the unit, or ulimit -n",
  ],
  [
    /\(for ([^\s()]+), and this member listens on ([^\s()]+) too\)/,
    ([, one, other]) =>
      `give ${one} and ${other} different ports: 0.0.0.0 and :: are all addresses`,
  ],
  [
    /address already in use|EADDRINUSE/i,
    ({ input }) => `something listens there already: ss -ltnp 'sport = :${portOf(input)}' names it`,
  ],
  [
    /cannot assign requested address|EADDRNOTAVAIL/i,
    () =>
      "--listen-client-urls and --listen-peer-urls must have addresses of this machine: ip -brief address lists them",
  ],
  [
    /input\/output error|\bEIO\b/i,
    () =>
      "the disk does not give its data back: dmesg | tail names it; put a new member in the place of this one (member replace)",
  ],
];

function portOf(text: string): string {
  const bound = [...text.matchAll(/:(\d{1,5}): bind/g)].at(-1);
  return (bound ?? /:(\d{1,5})\b/.exec(text))?.[1] ?? "PORT";
}

/**
 * The next step, or undefined where none is known.
 * @param user the user that the process runs as, in words
 */
export function nextStep(message: string, user: string): string | undefined {
  for (const [pattern, step] of STEPS) {
    const match = pattern.exec(message);
    if (match !== null) return step(match, user);
  }
  return undefined;
}

/** The user that this process runs as, for people. */
export function thisUser(): string {
  return process.getuid === undefined ? "this user" : `user ${process.getuid()}`;
}
