/** etcd 3.4, the last release whose v2 API has its own store. */
import { spawnSync } from "node:child_process";
import { type Executable, findProgram } from "../../support/executables.ts";

const path = process.env["ETCD34"] ?? findProgram("etcd");

function isEtcd34(program: string): boolean {
  const { stdout } = spawnSync(program, ["--version"], { encoding: "utf8" });
  return /^etcd Version: 3\.4\./.test(stdout);
}

/** The reference, if it is installed. */
export const etcd34: Executable | undefined =
  path !== undefined && isEtcd34(path) ? { name: "etcd", command: [path] } : undefined;

/** For a test's `skip` option. */
export const skipWithoutEtcd34: string | false =
  etcd34 === undefined ? "etcd 3.4 is not installed (Debian: apt-get install etcd-server)" : false;
