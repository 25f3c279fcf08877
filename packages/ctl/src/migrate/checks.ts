/** What is examined before the first member is replaced. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { badArguments, Exit, ExitCode, type Invocation, paintFor } from "@quorate/cli";
import { nodeDisk } from "@quorate/host/node";
import type { Member } from "@quorate/proto";
import { accessOf, endpointsOf } from "../connect/globals.ts";
import { hasErrors } from "../doctor/finding.ts";
import { humanReport } from "../doctor/report.ts";
import { membersOf } from "../doctor/view.ts";
import type { Joiner } from "../joining/diagnose.ts";
import { checkJoin, checkStored } from "../joining/look.ts";
import type { Wanted } from "./plan.ts";

/** Those that are to join, with what the flags tell of them. Throws Exit. */
function joinersOf({ flags, io }: Invocation, all: readonly Wanted[]): Joiner[] {
  const files = flags.strings("peer-cert-file");
  if (files.length > 1 && files.length !== all.length)
    throw badArguments("--peer-cert-file names one certificate for all, or one for each --member");
  const path = flags.string("data-dir");
  let space: Joiner["space"];
  try {
    space = path === "" ? undefined : { path, freeBytes: nodeDisk.freeBytes(path) };
  } catch (error) {
    throw new Exit(ExitCode.error, `--data-dir: ${(error as Error).message}`);
  }
  return all.map(({ peerUrl }, i) => {
    const file = files[i] ?? files[0];
    const certificate =
      file === undefined ? undefined : { path: file, pem: textOf(io.readFile(file)) };
    return { peerUrls: [peerUrl], certificate, space };
  });
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

/**
 * Reports what speaks against the move, and warnings.
 * @param members of the cluster now
 * @throws Exit where something does; ClientError
 */
export async function checkMove(
  invocation: Invocation,
  members: readonly Member[],
  wanted: readonly Wanted[],
): Promise<void> {
  const { flags, io } = invocation;
  const joiners = joinersOf(invocation, wanted).filter(({ peerUrls: [url = ""] }) =>
    members.every(({ peerURLs, isLearner }) => isLearner || !peerURLs.includes(url)),
  );
  const [endpoints, access] = [await endpointsOf(invocation), await accessOf(invocation)];
  const [cert] = flags.strings("peer-cert-file");
  const key = flags.string("peer-key-file");
  const peerTls =
    cert === undefined || key === ""
      ? undefined
      : { cert: io.readFile(cert), key: io.readFile(key) };
  const { findings, notes, view } = await checkJoin(
    invocation,
    { endpoints, access, peerTls },
    joiners,
  );
  const all = [...findings];
  // Only 3.5 keeps the members twice (etcd-io/etcd 19557).
  if (membersOf(view.members).some(({ status }) => status?.version.startsWith("3.5.") === true)) {
    const dir = flags.string("data-dir") || tmpdir();
    const path = join(dir, `quoratectl-migrate-${process.pid}.db`);
    all.push(...(await checkStored(invocation, { access }, view, path)));
  }
  if (all.length > 0) io.stderr(humanReport(view, all, notes, paintFor(io, false)));
  if (hasErrors(all))
    throw new Exit(ExitCode.error, "the cluster cannot be moved before the errors are mended");
}
