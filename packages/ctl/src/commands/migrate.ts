/**
 * quoratectl migrate: replaces all members of a running cluster by those of another program, one
 * after the other. Not in etcdctl.
 */
import {
  badArguments,
  boolFlag,
  type CommandBody,
  durationFlag,
  Exit,
  ExitCode,
  type Invocation,
  listFlag,
  textFlag,
} from "@quorate/cli";
import { defined, idToHex, type Member } from "@quorate/proto";
import { asExit } from "../connect/failed-call.ts";
import { peerUrl } from "../connect/peer-url.ts";
import { release } from "../connect/versions.ts";
import { endAdvice, removedAdvice, startAdvice } from "../migrate/advice.ts";
import { MovingCluster, presentOf, type Seen } from "../migrate/cluster.ts";
import { describe, labelOf, planOf, type Step, type Wanted } from "../migrate/plan.ts";
import { repeatSteps, type Stepped } from "./member-steps.ts";
import { printVariables, variablesOf } from "./member-variables.ts";

const PROGRAMS = ["quorate", "etcd"] as const;

interface Migration {
  readonly invocation: Invocation;
  readonly cluster: MovingCluster;
  readonly wanted: readonly Wanted[];
  readonly program: string;
  /** Names of members for whose start this run has done what it can. */
  readonly started: Set<string>;
  /** A change that was asked for, whose outcome is not known yet. */
  asked: Step | undefined;
}

/** "NAME=PEER-URL" of each member. Throws Exit. */
function wantedOf(texts: readonly string[]): Wanted[] {
  const wanted = texts.map((text) => {
    const at = text.indexOf("=");
    if (at < 1) throw badArguments(`--member is NAME=PEER-URL, not ${JSON.stringify(text)}`);
    return { name: text.slice(0, at), peerUrl: peerUrl(text.slice(at + 1)) };
  });
  if (wanted.length === 0) throw badArguments("give each member as --member NAME=PEER-URL");
  for (const field of ["name", "peerUrl"] as const)
    if (new Set(wanted.map((one) => one[field])).size < wanted.length)
      throw badArguments("two of --member have the same name or peer URL");
  return wanted;
}

/** Starts a member by --start, or says how. */
async function start(migration: Migration, { name, peerUrl }: Wanted, members: readonly Member[]) {
  const { invocation, program, started } = migration;
  if (started.has(name)) return;
  started.add(name);
  const { io, flags } = invocation;
  const added = {
    member: members.find(({ peerURLs }) => peerURLs.includes(peerUrl)),
    members: [...members],
  };
  const command = flags.string("start");
  if (command === "") {
    io.stdout(`Start ${name} with ${program} and these variables or the corresponding flags:\n`);
    printVariables(io, name, [peerUrl], added);
    io.stdout(`\n${startAdvice(name, program)}\n`);
    return;
  }
  const env = { ...io.env, ...Object.fromEntries(variablesOf(name, [peerUrl], added)) };
  const { code, error } = await io.run(["/bin/sh", "-c", command], env).ended;
  if (code !== 0) throw new Exit(ExitCode.error, `--start for ${name} failed: ${error ?? code}`);
}

/** How far a learner is. */
function progressOf(id: bigint, seen: readonly Seen[]): string {
  const applied = (one: Seen | undefined): number => one?.status.raftAppliedIndex ?? 0;
  const most = Math.max(...seen.map(applied));
  return `index ${applied(seen.find(({ member }) => member.ID === id))} of ${most}`;
}

async function step(migration: Migration): Promise<Stepped> {
  const { cluster, wanted, program } = migration;
  const { members, seen } = await cluster.look();
  const present = presentOf(members, seen);
  const plan = planOf(present, wanted);
  const next = defined(plan[0], "a step");
  const report = async (made: Step, left: number): Promise<Stepped> => {
    migration.asked = undefined;
    const { io } = migration.invocation;
    if (made.kind === "remove") io.stdout(removedAdvice(labelOf(made.member)));
    const { revision, members: compared } = await cluster.compareHashes();
    io.stdout(
      `${describe(made)}: done. ${compared} members are equal at revision ${revision}; ` +
        `${left} steps to go.\n`,
    );
    return { done: false, waitsFor: "" };
  };
  // The response was lost, as with a member that leaves; the cluster shows that it was made.
  const { asked } = migration;
  if (asked !== undefined && describe(asked) !== describe(next))
    return report(asked, plan.length - 1);
  const client = await cluster.client();
  const done = () => report(next, plan.length - 2);
  switch (next.kind) {
    case "add":
      migration.asked = next;
      await client.memberAdd([next.wanted.peerUrl], { isLearner: true });
      return done();
    case "start":
      await start(migration, next.wanted, members);
      return { done: false, waitsFor: `${next.wanted.name} has not been started yet` };
    case "promote":
      migration.asked = next;
      try {
        await client.memberPromote(next.member.id);
      } catch (error) {
        const { code } = error as { code?: string };
        if (code !== "MemberLearnerNotReady") throw error;
        const how = progressOf(next.member.id, seen);
        return { done: false, waitsFor: `${next.wanted.name} catches up: ${how}` };
      }
      return done();
    case "move-leader": {
      const leader = seen.find(({ member }) => member.ID === next.from.id);
      if (leader === undefined) return { done: false, waitsFor: "the leader does not respond" };
      await client.moveLeader(leader.endpoint, next.to.id);
      return done();
    }
    case "remove":
      migration.asked = next;
      await client.memberRemove(next.member.id);
      return done();
    case "done": {
      // Until it rises, an older etcd may come back, and a newer one would start on its entries.
      const version = program === "quorate" ? await cluster.version(seen) : undefined;
      const lowest = Math.min(...seen.map(({ status }) => release(status.version)));
      const rises = version !== undefined && release(version) < lowest;
      return { done: !rises, waitsFor: `the cluster's version rises from ${version}` };
    }
    case "refused":
      throw new Exit(ExitCode.error, next.why);
  }
}

function showPlan({ invocation: { io }, program }: Migration, plan: readonly Step[]): void {
  const [last] = plan.slice(-1);
  if (last?.kind === "refused") throw new Exit(ExitCode.error, last.why);
  io.stdout(`The plan, to ${program}:\n`);
  for (const [i, one] of plan.entries())
    io.stdout(`${String(i + 1).padStart(4)}. ${describe(one)}\n`);
}

async function run(invocation: Invocation): Promise<void> {
  const { args, flags, io } = invocation;
  if (args.length > 0) throw badArguments("migrate takes no arguments");
  const program = flags.string("to");
  if (!PROGRAMS.some((one) => one === program))
    throw badArguments(`--to is quorate or etcd, not ${JSON.stringify(program)}`);
  const cluster = new MovingCluster(invocation);
  const wanted = wantedOf(flags.strings("member"));
  const migration: Migration = {
    invocation,
    cluster,
    wanted,
    program,
    started: new Set<string>(),
    asked: undefined,
  };
  try {
    const { members, seen } = await cluster.look();
    // The checks read databases: their code is loaded when the command runs.
    const { checkMove } = await import("../migrate/checks.ts");
    await checkMove(invocation, members, wanted);
    const { revision, members: compared } = await cluster.compareHashes();
    const { header } = await (await cluster.client()).memberList();
    io.stdout(
      `Cluster ${idToHex(header?.clusterId ?? 0n)}: ${compared} members are equal at revision ${revision}.\n`,
    );
    showPlan(migration, planOf(presentOf(members, seen), wanted));
    if (flags.bool("dry-run")) return;
    const deadlineNs = io.nowNs() + BigInt(Math.round(flags.durationMs("wait-timeout") * 1e6));
    await repeatSteps(io, deadlineNs, () => step(migration));
    const end = await cluster.compareHashes();
    io.stdout(
      `All members are of ${program}: ${end.members} are equal at revision ${end.revision}. ` +
        `\n${endAdvice(end.clientUrls)}`,
    );
  } catch (error) {
    throw asExit(error, io);
  } finally {
    cluster.close();
  }
}

export const migrateClusterCommand: CommandBody = {
  long: `Replaces all members of a running cluster, from etcd 3.5 or later to Quorate or back, one after the
other: adds a new one as a learner, has it started, promotes it when it has caught up, removes an old
one, the leader last. After each step the hashes of all members are compared at one revision, and a
difference ends the command. The cluster keeps its id and always has as many voters as before.

--member gives each member as it is to be. Members of the cluster with such a peer URL stay, so the
command goes on where it was interrupted, and turns back if it is given the members from before; a
member that was removed needs an empty data directory then.

Before the first change it examines what has bitten others: members that do not respond or differ in
their lists of members, learners, versions, alarms, features, clocks. --peer-cert-file and --data-dir
have the names in the new members' certificates and the free space examined too.

--start is a shell command that starts the new member and returns; it finds ETCD_NAME and the other
variables. Without it, the command prints them and waits. Removed members end by themselves.`,
  flags: {
    to: textFlag("program of the new members", "", { values: PROGRAMS }),
    member: listFlag("NAME=PEER-URL of each member as it is to be"),
    "peer-cert-file": listFlag(
      "certificate of the new members' peer ports, or one for each --member: its names are checked",
    ),
    "peer-key-file": textFlag("its key: the members' lists on their peer ports are compared too"),
    "data-dir": textFlag("directory here for a new member's data: its free space is checked"),
    start: textFlag("shell command that starts a new member"),
    "dry-run": boolFlag("check, print the plan, change nothing"),
    "wait-timeout": durationFlag("how long to wait for new members and for the cluster", "1h"),
  },
  run,
};
