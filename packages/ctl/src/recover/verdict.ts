/**
 * A lost quorum: whether a cluster may go on with the data of one member, and whose. What lost
 * members have acknowledged and the survivor has not is gone for good, so all of this must hold:
 *
 *   - those that are left are of one cluster, and too few of them vote for a quorum;
 *   - of each other voter it is said that its data are lost. One that is only away may have more,
 *     and may still serve clients;
 *   - one of those left has both the highest term and the highest index, or was chosen.
 */
import { survivorOf } from "@quorate/backup";
import { idToHex, type Member } from "@quorate/proto";

/** What is known of a member that is left. */
export interface Witness {
  readonly id: bigint;
  readonly clusterId: bigint;
  /** Where it was found: a data directory or an endpoint. */
  readonly place: string;
  readonly isRunning: boolean;
  /** Of a running member whether it knows a leader. */
  readonly hasLeader: boolean;
  /** Of a data directory those of the last entry, of a running member the present and committed. */
  readonly term: number;
  readonly index: number;
  readonly commit: number;
  readonly revision: number | undefined;
  /** The members of the cluster as it knows them. */
  readonly members: readonly Pick<Member, "ID" | "name" | "isLearner">[];
}

export interface Verdict {
  readonly survivor: Witness;
  /** Members that leave the cluster. */
  readonly others: Witness["members"];
}

export const nameOf = (members: Witness["members"], id: bigint): string =>
  members.find((one) => one.ID === id)?.name || idToHex(id);

/**
 * The verdict, or why there is none, with what to do.
 * @param lost names or ids of members whose data are gone for good
 * @param chosen the name or id of the survivor where that is ambiguous; "" for none
 */
export function verdictOf(
  left: readonly Witness[],
  lost: readonly string[],
  chosen: string,
): Verdict | string {
  const [first] = left;
  if (first === undefined)
    return "no member is left: restore a backup (quorateutl backup restore, snapshot restore)";
  const stranger = left.find(({ clusterId }) => clusterId !== first.clusterId);
  if (stranger !== undefined)
    return `${stranger.place} is of the cluster ${idToHex(stranger.clusterId)}, and ${first.place} of ${idToHex(first.clusterId)}: give those of one cluster`;
  const twin = left.find(({ id }, i) => left.findIndex((one) => one.id === id) < i);
  if (twin !== undefined)
    return `two of those given are of the member ${idToHex(twin.id)}: leave the copy out`;
  const leading = left.find(({ hasLeader }) => hasLeader);
  if (leading !== undefined)
    return `the member at ${leading.place} knows a leader: nothing is lost; use "quoratectl member replace" for members that are`;
  if (left.some(({ isRunning }) => isRunning) && left.some(({ isRunning }) => !isRunning))
    return "some of those given run and some do not, and cannot be compared: stop them all and give their data directories";
  const newest = left.reduce((a, b) => (b.index > a.index ? b : a));
  const { members } = newest;
  const is = (id: bigint, text: string): boolean =>
    text.toLowerCase() === idToHex(id) || text === members.find(({ ID }) => ID === id)?.name;
  const unknown = [...lost, ...(chosen === "" ? [] : [chosen])].find(
    (text) => !members.some(({ ID }) => is(ID, text)),
  );
  if (unknown !== undefined)
    return `no member has the id or name ${JSON.stringify(unknown)}: there are ${members.map(({ ID }) => nameOf(members, ID)).join(", ")}`;
  const removed = left.find(({ id }) => !members.some(({ ID }) => ID === id));
  if (removed !== undefined)
    return `${removed.place} is of a member that ${newest.place} does not have: leave it out`;
  const voters = members.filter(({ isLearner }) => !isLearner);
  const present = voters.filter(({ ID }) => left.some(({ id }) => id === ID));
  const quorum = Math.floor(voters.length / 2) + 1;
  if (present.length >= quorum)
    return `${present.length} of ${voters.length} voters have their data, which is a quorum: start them, nothing is lost`;
  const away = voters.filter(
    ({ ID }) => !present.some((one) => one.ID === ID) && !lost.some((text) => is(ID, text)),
  );
  if (away.length > 0) {
    const names = away.map(({ ID }) => nameOf(members, ID));
    return `${names.join(", ")} may have more than those given, and may still serve clients: give the data of ${names.length === 1 ? "it" : "them"}, or, if these are gone for good, add ${names.map((name) => `--lost ${name}`).join(" ")}`;
  }
  const survivor = chosen === "" ? survivorOf(left) : left.find(({ id }) => is(id, chosen));
  if (survivor === undefined) {
    return chosen === ""
      ? "one member has the highest term and another the highest index: see what each has (quorateutl dump-logs), and choose with --survivor"
      : `${chosen} is not among those given`;
  }
  return { survivor, others: members.filter(({ ID }) => ID !== survivor.id) };
}
