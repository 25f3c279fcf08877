/** What quoratectl recover does: who is left, what would be lost, and the new cluster. */
import type { Invocation } from "@quorate/cli";
import { badArguments, drawTable, Exit, ExitCode } from "@quorate/cli";
import { idToHex } from "@quorate/proto";
import { accessOf, endpointsOf } from "../connect/globals.ts";
import { reportingErrors } from "../files/data-dir.ts";
import { prober } from "../observe/prober.ts";
import { dataDirectoryOf, makeAlone, witnessIn } from "./data-dir.ts";
import { nameOf, type Recovery, verdictOf, type Witness } from "./verdict.ts";

/** The running members that respond. */
async function reached(invocation: Invocation): Promise<Witness[]> {
  const { flags, io } = invocation;
  const timeoutMs = flags.durationMs("command-timeout");
  const probe = prober(invocation, await accessOf(invocation), timeoutMs);
  const witness = async (endpoint: string): Promise<Witness | undefined> => {
    try {
      const [status, members] = await Promise.all([
        probe.status(endpoint),
        probe.members(endpoint),
      ]);
      const { header, leader, raftTerm, raftIndex } = status;
      return {
        id: header?.memberId ?? 0n,
        clusterId: header?.clusterId ?? 0n,
        place: endpoint,
        isRunning: true,
        hasLeader: leader !== 0n,
        term: raftTerm,
        index: raftIndex,
        commit: raftIndex,
        revision: header?.revision,
        members,
      };
    } catch (error) {
      io.stderr(`${endpoint}: ${(error as Error).message}\n`);
      return undefined;
    }
  };
  try {
    const all = await Promise.all((await endpointsOf(invocation)).map(witness));
    return all.filter((one) => one !== undefined);
  } finally {
    probe.close();
  }
}

function show({ io }: Invocation, left: readonly Witness[]): void {
  const rows = left.map(({ id, members, place, term, index, commit, revision }) => [
    nameOf(members, id),
    idToHex(id),
    place,
    String(term),
    String(index),
    String(commit),
    String(revision ?? ""),
  ]);
  const header = ["name", "id", "found in", "term", "last index", "commit", "revision"];
  io.stdout(drawTable({ header, rows }));
}

function explain({ io }: Invocation, { survivor, others }: Recovery): string {
  const { members, id, index, revision } = survivor;
  const name = nameOf(members, id);
  const gone = others.map(({ ID }) => nameOf(members, ID)).join(", ");
  io.stdout(
    `The cluster ${idToHex(survivor.clusterId)} goes on with ${name} alone. ${gone} leave it.\n` +
      `What is lost: all that they acknowledged after index ${index} (revision ${revision ?? "?"} is there), if they did.\n`,
  );
  return name;
}

async function run(invocation: Invocation): Promise<void> {
  const { args, flags, io } = invocation;
  if (args.length > 0) throw badArguments("recover takes no arguments");
  const directories = flags.strings("data-dir").map(dataDirectoryOf);
  const left = await Promise.all(directories.map(witnessIn));
  if (directories.length === 0 || flags.isSet("endpoints"))
    left.push(...(await reached(invocation)));
  show(invocation, left);
  const verdict = verdictOf(left, flags.strings("lost"), flags.string("survivor"));
  if (typeof verdict === "string") throw new Exit(ExitCode.error, `no recovery: ${verdict}`);
  const name = explain(invocation, verdict);
  const survivor = directories.find(({ dataDir }) => dataDir === verdict.survivor.place);
  if (survivor === undefined) {
    const lost = verdict.others.map(({ ID }) => `--lost=${nameOf(verdict.others, ID)}`);
    io.stdout(
      `What to do: stop all members for good, and on the host of ${name} run\n` +
        `  quoratectl recover --auto --data-dir=DATA-DIR ${lost.join(" ")}\n`,
    );
    return;
  }
  if (!flags.bool("auto")) {
    io.stdout("Nothing was changed. Add --auto to do it.\n");
    return;
  }
  await makeAlone(survivor);
  io.stdout(
    `Done. Start ${name} as before, on ${survivor.dataDir}, and add members ("quoratectl member add"). ` +
      "Never start the others again on the data that they had.\n",
  );
}

/** Rejects with Exit where something stands in the way. */
export const runRecover = (invocation: Invocation): Promise<void> =>
  reportingErrors(() => run(invocation));
