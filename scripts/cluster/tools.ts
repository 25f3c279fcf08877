/** Our tools as processes, for the scripts that look into a cluster. */
import { execFile } from "node:child_process";
import { certificateFiles } from "../certs.ts";
import { type ClusterPlan, certsDir, clientUrl, type MemberPlan } from "./layout.ts";
import { commandOf } from "./programs.ts";

/** A tool that failed, with its words. */
export class ToolError extends Error {}

/**
 * Runs one of our tools; resolves to its standard output, rejects with ToolError. The caller's
 * ETCDCTL_* variables are for other endpoints than the one asked here.
 */
export function tool(name: "quoratectl" | "quorateutl", args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const [program, ...first] = commandOf(name);
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([key]) => !key.startsWith("ETCDCTL_")),
    );
    execFile(
      program,
      [...first, ...args],
      { maxBuffer: 64 << 20, env },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else
          reject(
            new ToolError(
              `${name} ${args.filter((arg) => !arg.startsWith("--")).join(" ")}: ${stderr.trim() || error.message}`,
            ),
          );
      },
    );
  });
}

/**
 * Runs quoratectl as a client of one member; resolves to its standard output, rejects with
 * ToolError.
 */
export function ctl(
  plan: ClusterPlan,
  member: MemberPlan,
  ...args: readonly string[]
): Promise<string> {
  const { ca, client, clientKey } = certificateFiles(certsDir(plan));
  return tool("quoratectl", [
    `--endpoints=${clientUrl(member)}`,
    `--cacert=${ca}`,
    `--cert=${client}`,
    `--key=${clientKey}`,
    ...args,
  ]);
}
