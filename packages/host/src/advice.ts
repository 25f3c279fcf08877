/**
 * The commands that error messages recommend, in one place.
 */

/**
 * The command that reads every record of a backend and names the first damage.
 */
export function verifyBackendCommand(dir: string): string {
  return `quorateutl backend verify ${dir}`;
}

/** A member whose files are damaged. What is not known stands in the commands in capitals. */
export interface DamagedMember {
  readonly dataDir: string;
  readonly name?: string;
  /** In hexadecimal. */
  readonly id?: string;
  /** Those that it advertises, comma-separated. */
  readonly peerUrls?: string;
  /** Where the log is, if it is not inside the data directory. */
  readonly walDir?: string;
}

/**
 * How a member whose files are damaged is replaced by the others, or where there are none is made
 * again from a copy.
 * @param salvage a way to such a copy that the member's own files leave, as a sentence
 */
export function replacementSteps(member: DamagedMember, salvage = ""): string {
  const { dataDir, name = "NAME", id, peerUrls = "ITS-PEER-URL" } = member;
  const old = member.name ?? id ?? "NAME";
  const { walDir } = member;
  const aside = [dataDir, ...(walDir === undefined ? [] : [walDir])]
    .map((dir) => `"mv ${dir} ${dir}.damaged"`)
    .join(", ");
  const target =
    `--name ${name} --data-dir ${dataDir} --initial-cluster ${clusterOf(name, peerUrls)} ` +
    `--initial-advertise-peer-urls ${peerUrls}${walDir === undefined ? "" : ` --wal-dir ${walDir}`}`;
  return (
    `with other members: "quoratectl member replace ${old} NEW-PEER-URL" against them, which needs no data of this one; or, to keep ` +
    `its peer URL, "quoratectl member remove ${id ?? "ID"}", ${aside}, "quoratectl member add ${name} ` +
    `--learner --peer-urls=${peerUrls}" and a start with what that prints and --auto-promote. Without other members: ${aside}, then ` +
    `"quorateutl backup restore BACKUP ${target}" or "quorateutl snapshot restore FILE ${target}", and start it as before` +
    (salvage === "" ? "" : `. ${salvage}`)
  );
}

function clusterOf(name: string, peerUrls: string): string {
  return peerUrls
    .split(",")
    .map((url) => `${name}=${url}`)
    .join(",");
}

/** What is left to do about a damaged log, after the words that name the damage. */
export function damagedLogSteps(member: DamagedMember): string {
  const salvage =
    `Without a backup either: "quorateutl snapshot save ${member.dataDir}.damaged FILE" makes such a file of its store, ` +
    "which lacks only what the damaged log alone has";
  return `What to do next: the log cannot be mended; ${replacementSteps(member, salvage)}`;
}
