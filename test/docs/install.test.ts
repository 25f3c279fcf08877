/**
 * docs/operate/install.md, walked through on three clean hosts, and the names by which the programs
 * of a release call themselves.
 * @slow
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { bundlePrograms, NATIVE_MODULE } from "../../scripts/release/bundle.ts";
import { nativeModule, ownPlatform } from "../../scripts/release/platform.ts";
import { releasePrograms } from "../../scripts/release/programs.ts";
import { findProgram } from "../support/executables.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { blocksOf } from "./guide.ts";

const root = join(import.meta.dirname, "../..");
const dir = scratchDirectory("quorate-install-test-");

test("each program of a release calls itself by its own name in its help", async (t) => {
  const { files } = await bundlePrograms(releasePrograms());
  const lib = join(dir, "lib");
  mkdirSync(lib);
  // Beside the launchers, as in an archive.
  mkdirSync(join(dir, "bin"));
  for (const { name } of releasePrograms()) writeFileSync(join(dir, "bin", name), "");
  for (const [name, content] of files) writeFileSync(join(lib, name), content);
  if (ownPlatform === undefined) return t.skip("there is no release for this platform");
  writeFileSync(join(lib, NATIVE_MODULE), nativeModule(ownPlatform));
  for (const { name } of releasePrograms()) {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(lib, `${name}.mjs`), "--help"],
      { encoding: "utf8" },
    );
    assert.equal(status, 0, stderr);
    const use = /^(?:use|usage):\s+(.+)$/im.exec(stdout)?.[1] ?? stdout.split("\n")[0];
    assert.match(
      use,
      new RegExp(`^\\s*${name}\\b(?!-)`),
      `${name} --help begins with ${JSON.stringify(stdout.slice(0, 200))}`,
    );
    assert.doesNotMatch(stdout, /scripts\/|\.ts\b|\bnode /, name);
  }
});

/** Why there can be no hosts here, or false. */
function skip(): string | false {
  if (process.platform !== "linux" || ownPlatform === undefined)
    return "releases are tried out on Linux only";
  if (process.getuid?.() !== 0) return "only root can make hosts";
  for (const program of ["unshare", "ip", "chroot", "setpriv", "useradd", "tar"]) {
    if (findProgram(program) === undefined) return `${program} is not installed`;
  }
  const trial = `set -e; ip link add br0 type bridge; ip link add v0 type veth peer name v1
    mkdir -p ${dir}/t; mount -t tmpfs t ${dir}/t; mkdir ${dir}/t/u ${dir}/t/w ${dir}/t/r
    mount -t overlay o -o lowerdir=/,upperdir=${dir}/t/u,workdir=${dir}/t/w ${dir}/t/r`;
  const { status } = spawnSync("unshare", [
    "--mount",
    "--net",
    "--pid",
    "--fork",
    "sh",
    "-c",
    trial,
  ]);
  return status === 0 ? false : "namespaces with a bridge and an overlay are not allowed here";
}

test("the commands of the installation guide bring three members up, as the unit's user, with a backup", {
  skip: skip(),
}, () => {
  const made = spawnSync(
    process.execPath,
    [
      join(root, "scripts/release.ts"),
      "--platform",
      ownPlatform!.name,
      "--out",
      join(dir, "dist"),
      "--no-deb",
      "--no-library",
      "--compression=1",
    ],
    { encoding: "utf8", env: { ...process.env, SOURCE_DATE_EPOCH: "1700000000" } },
  );
  assert.equal(made.status, 0, made.stderr);
  const [, archive] = readFileSync(join(dir, "dist/SHA256SUMS"), "utf8").trim().split(/ +/) as [
    string,
    string,
  ];

  const blocks = blocksOf(readFileSync(join(root, "docs/operate/install.md"), "utf8"));
  const block = (part: string, change = (text: string) => text): string => {
    const found = blocks.filter(({ command }) => command.includes(part));
    assert.equal(found.length, 1, `one block has ${part}`);
    const path = join(dir, `${part.replace(/\W+/g, "-")}-${change("infra1")}.sh`);
    writeFileSync(
      path,
      change(
        found[0].command.replaceAll("quorate-0.1.0-linux-x64", archive.replace(/\.tar\.gz$/, "")),
      ),
    );
    return path;
  };
  const third = (text: string): string =>
    text.replaceAll("infra1", "infra2").replaceAll("10.0.0.11", "10.0.0.12");
  const waits = join(dir, "waits.sh");
  // The reader looks when the members are up; the test has to wait for that.
  writeFileSync(
    waits,
    `export ETCDCTL_CACERT=/etc/quorate/pki/ca.pem ETCDCTL_CERT=/etc/quorate/pki/client.pem ETCDCTL_KEY=/etc/quorate/pki/client-key.pem
export ETCDCTL_ENDPOINTS=https://10.0.0.10:2379,https://10.0.0.11:2379,https://10.0.0.12:2379
for n in $(seq 120); do
  if quoratectl endpoint health >/dev/null 2>&1; then exit 0; fi
  systemctl is-active quorate || { cat /run/quorate.log; exit 1; }; sleep 0.5
done
cat /run/quorate.log; exit 1`,
  );
  const looks = join(dir, "looks.sh");
  writeFileSync(
    looks,
    'ps -o user:20= -p "$(cat /run/quorate.pid)"; cd /etc/quorate; ls -ld pki pki/server-key.pem; quorate-certs --help | head -1\n',
  );
  const script = join(dir, "walk.sh");
  writeFileSync(
    script,
    `for i in 0 1 2; do cp ${join(dir, "dist", archive)} "$(root_of $i)/root/"; on $i ${block("install.sh")}; done
on 0 ${block("quorate-certs create")}
for i in 1 2; do tar -C "$(root_of 0)/etc/quorate" -c pki | tar -C "$(root_of $i)/etc/quorate" -xp; done
on 1 ${block("sed -i")}
on 2 ${block("sed -i", third)}
for i in 0 1 2; do on $i ${block("enable --now --no-block quorate\n")}; done
on 0 ${waits}
for i in 0 1 2; do on $i ${looks}; done
on 0 ${block("endpoint health")}
on 2 ${block("quorate-backup.timer")}
`,
  );
  let said: string;
  try {
    said = execFileSync(
      "unshare",
      [
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        join(import.meta.dirname, "hosts.sh"),
        script,
      ],
      {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
        timeout: 400_000,
      },
    );
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`the walk ended early:\n${stdout}\n${stderr}`);
  }
  assert.match(said, /made the certificates in \/etc\/quorate\/pki\n/);
  assert.equal(
    said.match(
      /^quorate *\ndrwx------ .* quorate quorate .*\n-rw------- .* quorate quorate .*\nusage: quorate-certs /gm,
    )?.length,
    3,
    said,
  );
  assert.equal(said.match(/^https:\/\/10\.0\.0\.1\d:2379 is healthy/gm)?.length, 3, said);
  assert.match(said, /^OK$/m);
  assert.equal(
    said.match(
      /│ started │ infra\d │ https:\/\/10\.0\.0\.1\d:2380 │ https:\/\/10\.0\.0\.1\d:2379 │/g,
    )?.length,
    3,
    said,
  );
  assert.match(said, /^-rw------- .* quorate quorate +\d+ .*T\d{6}Z\.db$/m);
});
