/**
 * How scripts/etcd-robustness.sh judges the output of the tests; a fake of Go builds a fake of
 * them. The real ones need etcd's source.
 * @slow
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

const script = join(import.meta.dirname, "../../scripts/etcd-robustness.sh");

const LOGGED = `
traffic='    logger.go:1: now	INFO	Reporting complete traffic	{"successes": 40, "failures": 2}'
watch='    logger.go:1: now	INFO	Reporting complete watch	{"requests": 3, "events": 70}'
fault='    logger.go:1: now	INFO	Triggering failpoint	{"failpoint": "Kill"}'
judged='    logger.go:1: now	INFO	Linearization success
    logger.go:1: now	INFO	Watch validation success
    logger.go:1: now	INFO	Serializable validation success'
`;

/**
 * The tests: $1 to the last are their arguments; one scenario each that passes, fails, skips,
 * passes unjudged, passes without a log.
 */
const TESTS = `#!/bin/sh
${LOGGED}
case "$*" in
  *TestQuorateNames*)
    for name in Size1/Good Size1/Bad Size1/Skips Size1/Unjudged Size1/Unread; do echo "name: TestRobustnessExploratory false $name"; done
    echo "name: TestRobustnessRegression true Issue1"
    ;;
  *'^TestRobustnessExploratory$/^Size1$/^Good$ '*) printf '%s\\n' "$fault" "$traffic" "$watch" "$judged" ;;
  *'/^Bad$ '*) printf '%s\\n' "$fault" "$traffic" "$judged" "    main_test.go:9: linearization: Failure"; exit 1 ;;
  *'/^Skips$ '*) printf '%s\\n' "    cluster.go:7: please do something" "--- SKIP: it" ;;
  *'/^Unjudged$ '*) printf '%s\\n' "$fault" "$traffic" "    logger.go:1: now	INFO	Linearization success" ;;
  *'/^Unread$ '*) printf '%s\\n' "$fault" "$traffic" "$judged" "    logger.go:1: now	ERROR	Failed to read WAL" ;;
esac
`;

const SCENARIOS = "func Exploratory() {\n\te2e.WithGoFailEnabled(true),\n}\n";

/**
 * The directory of a fake checkout, and the path of a fake of Go, which writes the tests to what
 * follows -o.
 */
function fakes(
  context: TestContext,
  scenarios = SCENARIOS,
): { directory: string; source: string; go: string } {
  const directory = mkdtempSync(join(tmpdir(), "quorate-robustness-script-"));
  context.after(() => rmSync(directory, { recursive: true }));
  const source = join(directory, "etcd");
  mkdirSync(join(source, "tests/robustness/scenarios"), { recursive: true });
  writeFileSync(join(source, "tests/robustness/scenarios/scenarios.go"), scenarios);
  mkdirSync(join(source, "pkg/proxy"), { recursive: true });
  writeFileSync(join(source, "pkg/proxy/server.go"), "errc: make(chan error, 16),\n");
  writeFileSync(join(directory, "tests"), TESTS);
  chmodSync(join(directory, "tests"), 0o755);
  const go = join(directory, "go");
  writeFileSync(
    go,
    `#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp "${directory}/tests" "$2"\n`,
  );
  chmodSync(go, 0o755);
  return { directory, source, go };
}

function run(
  go: string,
  ...args: string[]
): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(script, args, {
    encoding: "utf8",
    env: { ...process.env, GO: go },
    timeout: 60_000,
  });
}

test("each scenario's outcome is printed and counted, and one that judged less than all has failed", (context) => {
  const { directory, source, go } = fakes(context);
  const results = join(directory, "results");
  const { status, stdout, stderr } = run(go, "--source", source, "--results", results);
  assert.equal(status, 1, stderr);
  assert.match(stdout, /^left out {2}Issue1: needs failpoints in the program of etcd$/m);
  assert.match(stdout, /^passed {4}Size1\/Good \(Kill; 40 requests, 70 watch events, \d+ s\)$/m);
  assert.match(
    stdout,
    /^FAILED {4}Size1\/Bad \(Kill; \d+ s\)[^\n]*\n {8}main_test\.go:9: linearization: Failure$/m,
  );
  assert.match(stdout, /^skipped {3}Size1\/Skips: please do something$/m);
  assert.match(stdout, /^FAILED {4}Size1\/Unjudged /m);
  assert.match(
    stdout,
    /^FAILED {4}Size1\/Unread [^\n]*\n {4}the test passed, but has not judged all that there is to judge$/m,
  );
  assert.match(
    stdout,
    /^1 histories judged correct \(40 requests\), 3 failed, 2 scenarios left out$/m,
  );
  assert.match(stderr, /failed: Size1\/Bad Size1\/Unjudged Size1\/Unread$/m);
  assert.match(readFileSync(join(results, "Size1-Bad-1.log"), "utf8"), /linearization: Failure/);
});

test("rounds repeat the scenarios of a name, and all that passes ends with 0", (context) => {
  const { source, go } = fakes(context);
  const { status, stdout } = run(go, "--source", source, "--run", "Size1/Good", "--rounds", "2");
  assert.equal(status, 0, stdout);
  assert.match(
    stdout,
    /^2 histories judged correct \(80 requests\), 0 failed, 0 scenarios left out$/m,
  );
  const list = run(go, "--source", source, "--run", ".*Bad|Issue1", "--list");
  assert.equal(
    list.stdout,
    "Size1/Bad\nIssue1  (left out: needs failpoints in the program of etcd)\n",
  );
});

test("what makes no sense is refused with what would", (context) => {
  const { directory, source, go } = fakes(context);
  const refused = (expected: RegExp, ...args: string[]) => {
    const { status, stderr } = run(go, ...args);
    assert.deepEqual([status, expected.test(stderr)], [1, true], stderr);
  };
  refused(/--source is missing/);
  refused(/--source needs a value/, "--source");
  refused(
    /tests\/robustness\/scenarios is not there: is .* a checkout of etcd 3\.7\?/,
    "--source",
    directory,
  );
  refused(/--rounds is a whole number from 1 to 9999, not 0/, "--source", source, "--rounds", "0");
  refused(
    /--fault is one of those that --help names, not Flood/,
    "--source",
    source,
    "--fault",
    "Flood",
  );
  refused(
    /--minutes is a whole number from 1 to 9999, not ten/,
    "--source",
    source,
    "--minutes",
    "ten",
  );
  refused(
    /--patience is a whole number from 1 to 99, not 100/,
    "--source",
    source,
    "--patience",
    "100",
  );
  refused(/unknown: --fast \(--help lists the options\)/, "--fast");
  refused(
    /no scenario is called Absent \(--list prints their names\)/,
    "--source",
    source,
    "--run",
    "Absent",
  );
  const other = fakes(context, "func Exploratory() {\n}\n");
  refused(
    /scenarios\/scenarios\.go is not as in etcd 3\.7: nothing matches/,
    "--source",
    other.source,
  );
});
