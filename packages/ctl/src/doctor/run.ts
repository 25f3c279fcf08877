/** quoratectl doctor: examines, diagnoses, reports. */

import { X509Certificate } from "node:crypto";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { badArguments, Exit, ExitCode, type Invocation, type Io, paintFor } from "@quorate/cli";
import { pemBlocks } from "@quorate/host";
import { accessOf, endpointsOf } from "../connect/globals.ts";
import { memberTimeoutMs } from "../observe/flags.ts";
import { prober } from "../observe/prober.ts";
import { hasResponded } from "../observe/responded.ts";
import { commandMaker } from "./commands.ts";
import { diagnose } from "./diagnose.ts";
import { look } from "./look.ts";
import { humanReport, jsonReport } from "./report.ts";
import { answerRestart } from "./restart-safe.ts";
import type { ClusterView, DiskProbe, FileCertificate, MemberView } from "./view.ts";

/** Throws Exit with code 1 if there are findings, or if --restart-safe is answered with no. */
export async function runDoctor(invocation: Invocation): Promise<void> {
  const { args, flags, io } = invocation;
  if (args.length > 0) throw badArguments("doctor command accepts no arguments");
  const form = flags.string("write-out");
  if (form !== "simple" && form !== "table" && form !== "json")
    throw new Exit(
      ExitCode.badFeature,
      `doctor has the formats simple, table and json, not ${form}`,
    );
  const limits = {
    fsyncMs: flags.durationMs("fsync-limit"),
    clockMs: flags.durationMs("clock-limit"),
    certificateDays: flags.int("certificate-days"),
  };
  const timeoutMs = memberTimeoutMs(flags);
  const [endpoints, access] = [await endpointsOf(invocation), await accessOf(invocation)];
  if (endpoints.length === 0)
    throw new Exit(ExitCode.badConnection, "etcdclient: no available endpoints");
  const files = ["cert", "cacert"].flatMap((flag) =>
    fileCertificates(io, `--${flag}`, flags.string(flag)),
  );
  const disk = probeOf(io, flags.string("probe-dir"));
  const asked = prober(invocation, access, timeoutMs);
  try {
    const { members, notes } = await look(asked, { endpoints, tls: access.tls, timeoutMs });
    const view: ClusterView = {
      members,
      files,
      disk,
      nowMs: Date.now(),
      limits,
      endpoint: advisedMember(members)?.endpoint ?? "",
      command: commandMaker(flags, io.env),
    };
    const restarted = flags.string("restart-safe");
    if (restarted !== "") {
      answerRestart(io, view, restarted, form === "json");
      return;
    }
    const findings = diagnose(view);
    io.stdout(
      form === "json"
        ? jsonReport(view, findings, notes)
        : humanReport(view, findings, notes, paintFor(io, flags.bool("no-color"))),
    );
    if (findings.length > 0) throw new Exit(ExitCode.error, "");
  } finally {
    asked.close();
  }
}

/**
 * The endpoint for the printed commands: the leader's, else a voter's; a learner refuses most
 * calls.
 */
function advisedMember(members: readonly MemberView[]): MemberView | undefined {
  const answering = members.filter(hasResponded);
  const leader = answering.find(
    ({ status }) => status.leader !== 0n && status.leader === status.header?.memberId,
  );
  return leader ?? answering.find(({ status }) => !status.isLearner) ?? answering[0];
}

/**
 * The certificates in a file of the client. Unreadable files are refused when the client is made.
 */
function fileCertificates(io: Io, flag: string, path: string): FileCertificate[] {
  if (path === "") return [];
  const text = Buffer.from(io.readFile(path)).toString("latin1");
  return pemBlocks(text, "CERTIFICATE").flatMap(({ text: pem }) => {
    try {
      const certificate = new X509Certificate(pem);
      const subject = certificate.subject.replace(/^CN=/, "").replaceAll("\n", ", ");
      return [
        {
          flag,
          path,
          subject,
          validFromMs: Date.parse(certificate.validFrom),
          validToMs: Date.parse(certificate.validTo),
        },
      ];
    } catch (error) {
      throw badArguments(
        `${flag} ${path} contains an unreadable certificate: ${(error as Error).message}`,
      );
    }
  });
}

function probeOf(io: Io, path: string): DiskProbe | undefined {
  if (path === "") return undefined;
  try {
    return probeDisk(path, () => io.nowNs());
  } catch (error) {
    throw badArguments(`--probe-dir ${path}: ${(error as Error).message}`);
  }
}

/** The size of a small batch of entries. */
const WRITE_BYTES = 4096;
const SYNCS = 200;
/** Longest duration of the measurement. */
const LIMIT_NS = 3_000_000_000n;

/**
 * Measures synced writes in a local directory, as a member's log makes them.
 *
 * Writes to a temporary file. Throws the system's error if the directory is not writable.
 */
export function probeDisk(path: string, nowNs: () => bigint): DiskProbe {
  const dir = mkdtempSync(join(path, "quorate-probe-"));
  const tookMs: number[] = [];
  try {
    const file = openSync(join(dir, "probe"), "w", 0o600);
    try {
      const bytes = new Uint8Array(WRITE_BYTES);
      const startNs = nowNs();
      while (tookMs.length < SYNCS && nowNs() - startNs < LIMIT_NS) {
        const beginNs = nowNs();
        writeSync(file, bytes);
        fdatasyncSync(file);
        tookMs.push(Number(nowNs() - beginNs) / 1e6);
      }
    } finally {
      closeSync(file);
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  tookMs.sort((a, b) => a - b);
  const at = (share: number): number =>
    tookMs[Math.min(tookMs.length - 1, Math.floor(share * tookMs.length))] ?? 0;
  return { path, p50Ms: at(0.5), p99Ms: at(0.99), syncs: tookMs.length };
}
