/** `quorate grpc-proxy`, as a process of a test. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import type { TestContext } from "node:test";
import { endsWith } from "./children.ts";
import { quorate } from "./executables.ts";
import { freePorts } from "./ports.ts";
import { until } from "./until.ts";

/** Starts a proxy that ends with the test. Resolves with its address when it serves. */
export async function startGrpcProxy(
  t: TestContext,
  endpoints: readonly string[],
  flags: readonly string[] = [],
): Promise<string> {
  const [port] = await freePorts(1);
  const address = `127.0.0.1:${port}`;
  const [program, ...args] = quorate.command;
  const own = [
    `--listen-addr=${address}`,
    `--advertise-client-url=${address}`,
    `--endpoints=${endpoints.join(",")}`,
  ];
  const child = spawn(program, [...args, "grpc-proxy", "start", ...own, ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  endsWith(child, t);
  let log = "";
  child.stderr.on("data", (chunk: Buffer) => (log += chunk.toString()));
  await until("a proxy serves", () => {
    assert.equal(child.exitCode, null, log);
    return log.includes("started gRPC proxy");
  });
  return address;
}
