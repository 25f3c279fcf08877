/**
 * The command `./dev fuzz cluster`: three real members under hostile requests (fuzzer.ts;
 * options.ts says what it can do).
 */
import { cpSync, existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { orRefuse } from "../../scripts/dev/command-line.ts";
import { startCluster } from "../support/cluster.ts";
import { Found, Fuzzer } from "./fuzzer.ts";
import { readOptions } from "./options.ts";

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Returns the exit code: 0 clean, 1 something was found, 2 a wrong command line. */
async function main(): Promise<number> {
  const options = orRefuse(() => readOptions(process.argv.slice(2)));
  print(`seed ${options.seed}; ${JSON.stringify(options)}`);
  const cluster = await startCluster({
    size: 3,
    tls: options.tls,
    flags: ["--snapshot-count=500", "--snapshot-catchup-entries=100"],
  });
  const keep = (): void => {
    if (!existsSync(cluster.dir)) {
      print(`data and logs are gone: another process has removed ${cluster.dir}`);
      return;
    }
    const kept = mkdtempSync(join(tmpdir(), "quorate-fuzz-"));
    cpSync(cluster.dir, kept, { recursive: true });
    print(`data and logs are kept in ${kept}`);
  };
  try {
    const fuzzer = new Fuzzer(options, cluster);
    await fuzzer.run(print);
    print(`clean: ${JSON.stringify(fuzzer.counts)}`);
    if (options.keep) keep();
    return 0;
  } catch (error) {
    print(
      error instanceof Found
        ? `FOUND: ${error.message}`
        : `the fuzzer failed: ${(error as Error).stack}`,
    );
    print(`again with: ./dev fuzz cluster --seed ${options.seed}`);
    keep();
    return 1;
  } finally {
    await cluster.destroy();
  }
}

process.exitCode = await main();
process.exit();
