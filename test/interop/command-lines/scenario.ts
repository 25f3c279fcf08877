/**
 * Command lines as text (scenarios.txt): what a person types, run through etcdctl and quoratectl
 * alike.
 *
 *     == txn: the first branch          a scenario; its name is unique
 *     cluster three                     where it runs: "one" (shared, a member; the default),
 *                                       "three" (shared), "fresh" (a member of its
 *                                       own), "none"
 *     process                           quoratectl runs as a process of its own in this scenario,
 *                                       not inside the comparing one
 *     alarm NOSPACE                     raised at the first member before the scenario, ended after
 *                                       it
 *     bare                              no --endpoints and time limits are added
 *     compare exit                      texts for people: only the exit codes are compared, and
 *                                       whether anything is printed
 *     $ put a 1                         a command line of etcdctl, without the program's name;
 *                                       quotes as in a shell
 *     $ ETCDCTL_WRITE_OUT=json get a    with a variable
 *     <<                                standard input of the line before, up to ">>"
 *     >>
 *     % snapshot status {dir}/a         a command line of etcdutl (etcdctl itself before 3.5) and
 *                                       quorateutl
 *     & watch a --rev={rev+1}           runs on while the next lines run; ended by SIGINT with the
 *                                       scenario
 *     until 2                           the line before is ended by SIGINT after so many lines of
 *                                       output; after "&", so many lines are
 *                                       waited for before the next command line runs
 *     last 8                            after "&": so many lines are waited for before it is ended
 *
 * {endpoint} (all, comma-separated), {endpoint0} (what lines without --endpoints get), {peer0},
 * {member0} and {name0} (in the order of ids; member 0 leads), {dead} (an endpoint without a
 * listener), {dir} (the scenario's directory), {rev} and {rev+N} (from the revision at which it
 * starts), {lease} (granted last), {added} (the member added last), {big:N} (N characters).
 */

/** Where a scenario runs. */
export type Place = "one" | "three" | "fresh" | "none";

/** One command line. */
export interface Step {
  readonly tool: "ctl" | "utl";
  /** As typed, with placeholders. */
  readonly line: string;
  readonly input: string;
  /** Lines of output to wait for; undefined: its end is waited for. */
  readonly untilLines: number | undefined;
  /** Lines of output to wait for before it is ended; for one in the background. */
  readonly lastLines: number;
  readonly background: boolean;
}

export interface Scenario {
  readonly name: string;
  readonly place: Place;
  readonly ownProcess: boolean;
  readonly alarm: string | undefined;
  readonly bare: boolean;
  readonly exitOnly: boolean;
  readonly steps: readonly Step[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Reads scenarios. Throws Error that names the line which is wrong. */
export function parseScenarios(text: string): Scenario[] {
  const scenarios: (Omit<Mutable<Scenario>, "steps"> & { steps: Mutable<Step>[] })[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const fail = (what: string): never => {
      throw new Error(`line ${at + 1}: ${what}: ${line}`);
    };
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [word, ...rest] = line.split(" ");
    const tail = rest.join(" ");
    if (word === "==") {
      if (scenarios.some(({ name }) => name === tail) || tail === "")
        fail("a scenario needs a name of its own");
      scenarios.push({
        name: tail,
        place: "one",
        ownProcess: false,
        alarm: undefined,
        bare: false,
        exitOnly: false,
        steps: [],
      });
      continue;
    }
    const scenario = scenarios.at(-1) ?? fail("a scenario begins with == and its name");
    const step = scenario.steps.at(-1);
    if (word === "cluster" && ["one", "three", "fresh", "none"].includes(tail))
      scenario.place = tail as Place;
    else if (word === "process") scenario.ownProcess = true;
    else if (word === "bare") scenario.bare = true;
    else if (word === "compare" && tail === "exit") scenario.exitOnly = true;
    else if (word === "alarm") scenario.alarm = tail;
    else if (word === "$" || word === "%" || word === "&") {
      scenario.steps.push({
        tool: word === "%" ? "utl" : "ctl",
        line: tail,
        input: "",
        untilLines: undefined,
        lastLines: 0,
        background: word === "&",
      });
    } else if (step === undefined) fail("neither a setting nor a command line");
    else if (word === "until" && /^\d+$/.test(tail)) step.untilLines = Number(tail);
    else if (word === "last" && /^\d+$/.test(tail)) step.lastLines = Number(tail);
    else if (word === "<<" && tail === "") {
      const end = lines.indexOf(">>", at);
      if (end < 0) fail("this input has no end >>");
      step.input = lines
        .slice(at + 1, end)
        .map((one) => `${one}\n`)
        .join("");
      at = end;
    } else fail("neither a setting nor a command line");
  }
  return scenarios;
}

/** A command line cut into words as a shell does, with the variables that stand before it. */
export interface Words {
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

/**
 * Cuts an expanded line: blanks part words, '...' is taken as it is, "..." with \n, \t, \\ and \"
 * in it. Throws Error at an open quote.
 */
export function splitLine(line: string): Words {
  const words: string[] = [];
  const pattern = /\s*((?:'[^']*'|"(?:[^"\\]|\\.)*"|[^\s'"])+)\s*/y;
  while (pattern.lastIndex < line.length) {
    const at = pattern.lastIndex;
    const found = pattern.exec(line);
    if (found === null) throw new Error(`cannot read ${line.slice(at)} in: ${line}`);
    words.push(
      found[1].replace(
        /'([^']*)'|"((?:[^"\\]|\\.)*)"/g,
        (_, plain: string | undefined, escaped: string) => plain ?? unescaped(escaped),
      ),
    );
  }
  const env: Record<string, string> = {};
  while (/^[A-Z_][A-Z0-9_]*=/.test(words[0] ?? "")) {
    const [name, ...value] = words.shift()!.split("=");
    env[name] = value.join("=");
  }
  return { env, args: words };
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "0": "\0" };

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, char: string) => ESCAPES[char] ?? char);
}

/** Replaces placeholders. Throws Error for one that has no value. */
export function expand(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(
    /\{([a-z]+\d*)(?:([:+])(\d+))?\}/g,
    (all, name: string, sign: string | undefined, number: string) => {
      if (name === "big" && sign === ":") return "x".repeat(Number(number));
      const value = values.get(name);
      if (value === undefined) throw new Error(`${all} has no value here`);
      return sign === "+" ? String(Number(value) + Number(number)) : value;
    },
  );
}
