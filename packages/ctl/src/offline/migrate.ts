/**
 * etcdutl's migration of a data directory between releases. Quorate's store has one layout for all
 * releases of etcd's API, so there is nothing to migrate. The command validates its flags as
 * etcdutl does, and explains how to move data to another release.
 */

import type { Command } from "@quorate/cli";
import { badArguments, boolFlag, Exit, ExitCode, textFlag } from "@quorate/cli";
import { apiVersion } from "../connect/versions.ts";
import { plainPath, reportingErrors, storeDirectory } from "../files/data-dir.ts";

/** A release "X.Y", checked as etcdutl does, with its texts. Throws Exit. */
function releaseOf(text: string): string {
  const refuse = (message: string): never => {
    throw badArguments(message);
  };
  if (text.split(".").length !== 2)
    refuse(`wrong target version format, expected "X.Y", got ${JSON.stringify(text)}`);
  const [major, minor] = text
    .split(".")
    .map((part) => (/^(?:0|[1-9]\d*)$/.test(part) ? Number(part) : Number.NaN)) as [number, number];
  if (Number.isNaN(major) || Number.isNaN(minor))
    refuse(`failed to parse target version: ${text}.0 is not a version`);
  if (major < 3 || (major === 3 && minor < 5))
    refuse(`target version ${JSON.stringify(`${major}.${minor}`)} not supported. Minimal "3.5"`);
  return `${major}.${minor}`;
}

export const migrateCommand: Command = {
  use: "migrate --data-dir {dir} --target-version X.Y [--force]",
  short: "Checks the release of a stopped member's store (no migration is ever needed)",
  long: `Checks the release of a stopped member's store.

A store of Quorate has one layout, that of release ${apiVersion}. To move the data to etcd 3.4 or
later, save a snapshot with "quoratectl snapshot save" and restore it with that release's etcdutl or
etcdctl.`,
  flags: {
    "data-dir": textFlag("the member's data directory", "", { required: true }),
    "target-version": textFlag("release as X.Y, 3.5 or later", "", { required: true }),
    force: boolFlag("accepted for compatibility with etcdutl; without effect"),
  },
  async run({ flags, io }) {
    const target = releaseOf(flags.string("target-version"));
    const dataDir = plainPath(flags.string("data-dir"));
    await reportingErrors(async () => void storeDirectory(dataDir));
    if (target !== apiVersion) {
      throw new Exit(
        ExitCode.error,
        `the store in ${dataDir} is of release ${apiVersion} and has no other layout; to move its data to etcd ${target}, ` +
          'save a snapshot with "quoratectl snapshot save" and restore it with the etcdutl of that release',
      );
    }
    io.stderr(`storage version up-to-date: ${apiVersion}\n`);
  },
};
