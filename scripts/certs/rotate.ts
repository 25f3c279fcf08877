/**
 * Exchanges all certificates of a directory, the authorities too, while a cluster runs on them and
 * no connection is refused:
 *
 *   1. trust ca.pem and peer-ca.pem hold the old authority and the new one each; everybody trusts
 *      both
 *   2. issue server, peer and client certificates of the new authorities take the place of the old
 *      ones, those of added clients too
 *   3. drop    ca.pem and peer-ca.pem hold the new authorities alone
 *
 * Between the steps every reader of the files must have read them again: members do so every few
 * seconds, other programs when they start or as they do. A directory that is copied to other hosts
 * is copied after each step. What a step needs lies in next/ until the last one is done, so that a
 * rotation that was cut short goes on where it was. The authorities' keys are never written.
 *
 *   DIR/next/       the new files (0700), from step 1 to step 2
 *   DIR/next/ca.pem, DIR/next/peer-ca.pem   the new authorities, until step 3
 */

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { writeWholeFile } from "@quorate/host/node";
import {
  addedClientFiles,
  addedClients,
  type CertificateFiles,
  certificateFiles,
  certificatesOf,
  type LeafNames,
  leafNamesOf,
  writeCertificates,
} from "../certs.ts";

/** One step of a rotation. */
export type RotationStep = "trust" | "issue" | "drop";

/** The step that comes next in `dir`. */
export function nextStep(dir: string): RotationStep {
  const next = certificateFiles(join(dir, "next"));
  if (!existsSync(next.ca)) return "trust";
  if (
    authorities(certificateFiles(dir), next).some(
      ([now, coming]) => !read(now).includes(read(coming).trim()),
    )
  )
    return "trust";
  return pairs(join(dir, "next"), dir).some(([{ cert }]) => existsSync(cert)) ? "issue" : "drop";
}

const read = (path: string): string => readFileSync(path, "utf8");

/** The files of authorities, each with the one that follows it. */
function authorities(
  now: CertificateFiles,
  next: CertificateFiles,
): readonly (readonly [string, string])[] {
  return [
    [now.peerCa, next.peerCa],
    [now.ca, next.ca],
  ];
}

/** A certificate with its key. */
type Pair = { readonly cert: string; readonly key: string };

/** Each pair of the directory of new files, with the place that it takes. */
function pairs(nextDir: string, dir: string): (readonly [Pair, Pair])[] {
  const firsts = (files: CertificateFiles): Pair[] => [
    { cert: files.server, key: files.serverKey },
    { cert: files.peer, key: files.peerKey },
    { cert: files.client, key: files.clientKey },
  ];
  const targets = firsts(certificateFiles(dir));
  return [
    ...firsts(certificateFiles(nextDir)).map((pair, i) => [pair, targets[i]] as const),
    ...addedClients(nextDir).map((pair) => [pair, addedClientFiles(dir, pair.name)] as const),
  ];
}

/**
 * Does one step, which must be the next. New certificates name what the old ones name, unless
 * `names` says otherwise.
 */
export async function rotate(
  dir: string,
  step: RotationStep,
  names: LeafNames = leafNamesOf(dir),
): Promise<void> {
  const due = nextStep(dir);
  if (due !== step)
    throw new Error(`the next step of the rotation in ${dir} is "${due}", not "${step}"`);
  const now = certificateFiles(dir);
  const nextDir = join(dir, "next");
  const next = certificateFiles(nextDir);
  if (step === "trust") {
    if (!existsSync(next.ca)) {
      rmSync(nextDir, { recursive: true, force: true });
      mkdirSync(nextDir, { mode: 0o700 });
      await writeCertificates(nextDir, names);
    }
    for (const [trusted, coming] of authorities(now, next)) {
      const isThere = read(trusted).includes(read(coming).trim());
      if (!isThere)
        writeWholeFile(
          trusted,
          [...certificatesOf(trusted), read(coming).trim(), ""].join("\n"),
          0o644,
        );
    }
  } else if (step === "issue") {
    for (const [{ cert, key }, target] of pairs(nextDir, dir)) {
      mkdirSync(dirname(target.cert), { recursive: true, mode: 0o700 });
      // A reader that comes in between finds a pair that does not fit, and looks again.
      if (existsSync(key)) renameSync(key, target.key);
      if (existsSync(cert)) renameSync(cert, target.cert);
    }
  } else {
    for (const [trusted, coming] of authorities(now, next))
      writeWholeFile(trusted, read(coming), 0o644);
    rmSync(nextDir, { recursive: true });
  }
}
