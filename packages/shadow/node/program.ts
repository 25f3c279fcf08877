/** `quorate shadow`: a member beside the voters of an etcd cluster, which compares and leaves. */
import { rmSync } from "node:fs";
import {
  badArguments,
  boolFlag,
  durationFlag,
  Exit,
  ExitCode,
  type Flags,
  type Invocation,
  type Io,
  listFlag,
  type Paint,
  type Program,
  paintFor,
  textFlag,
} from "@quorate/cli";
import type { Client } from "@quorate/client";
import {
  accessOf,
  asExit,
  checkJoin,
  checkStored,
  clientOf,
  endpointsOf,
  globalFlags,
  hasErrors,
  humanReport,
  type JoinAccess,
  type JoinCheck,
  jsonReport,
  membersEndpoints,
} from "@quorate/ctl";
import { parseDuration } from "@quorate/host";
import {
  type NodeLogger,
  nodeClock,
  nodeDisk,
  nodeLogger,
  writeWholeFile,
} from "@quorate/host/node";
import type { Member } from "@quorate/member";
import {
  idFromHex,
  idToHex,
  type Member as ListedMember,
  type MemberAddResponse,
} from "@quorate/proto";
import type { ServerConfig } from "@quorate/server";
import { type ServingMember, serve } from "@quorate/server/node";
import type { PeerCall } from "@quorate/transport";
import { shadowPages } from "../src/page.ts";
import { joining, MEMBER_FLAGS, shadowConfig } from "./config.ts";
import { Following } from "./following.ts";
import { quiet } from "./quiet.ts";
import { readState, type ShadowState, writeState } from "./state-file.ts";

/** How long it tries to leave. */
const LEAVE_WITHIN_MS = 60_000;
/** How long it waits for voters that have just started. */
const ADD_WITHIN_MS = 15_000;
const RETRY_MS = 1000;
const MIN_EVERY_MS = 1000;
const DAY_MS = 86_400_000;
const REPORT_MODE = 0o644;
/** What a member of Quorate takes unless its flags say another. */
const USUAL = { maxTxnOps: 128, maxRequestBytes: 1.5 * 1024 * 1024, quotaBytes: 2 * 1024 ** 3 };

const SHADOW_FLAGS: Flags = {
  join: listFlag("peer or client URLs of members of the running cluster (default: --endpoints)"),
  for: textFlag("leave after this time, such as 7d or 36h (0: on a signal)", "0"),
  every: durationFlag("interval of comparisons", "5m0s"),
  report: textFlag("file that the report is written to, as JSON"),
  check: boolFlag("only examine the cluster, and change nothing"),
  leave: boolFlag(
    "only remove the learner of this data directory, or of --initial-advertise-peer-urls",
  ),
  "no-color": boolFlag("no colours"),
  ...MEMBER_FLAGS,
};

export const shadowProgram: Program = {
  name: "quorate",
  short: "A shadow of an etcd cluster. Without a command quorate runs a member.",
  groups: [
    {
      title: "Commands",
      commands: [
        {
          use: "shadow --join URL...",
          short: "follow an etcd cluster as a learner, and compare",
          long: `Joins a running etcd cluster (3.5 to 3.7) as a learner: it counts in nobody's quorum, serves no
client, and writes nothing but its own name. It follows the log and compares its HashKV with the
voters' at every compaction and every --every. At the end of --for, or on SIGTERM or SIGINT, it
removes itself and prints what it found. Its exit code is 1 if a voter's history differs.

Before it joins it examines the cluster (--check does only that), and ends at what would do harm.
After its host died, start it again with the same --data-dir: it goes on, or leaves with --leave.

The flags of the first group are those of quoratectl, for the client ports of the cluster; those
that begin with "peer" are those of a member.`,
          flags: SHADOW_FLAGS,
          run: runShadow,
        },
      ],
    },
  ],
  globals: globalFlags,
};

async function runShadow(invocation: Invocation): Promise<void> {
  const { args, flags } = invocation;
  if (args.length > 0) throw badArguments(`shadow takes no arguments, got ${args.join(" ")}`);
  const forMs = forMsOf(flags.string("for"));
  const everyMs = flags.durationMs("every");
  if (everyMs < MIN_EVERY_MS) throw badArguments("--every is one second or more");
  try {
    const shadow = await Shadow.of(invocation, { forMs, everyMs });
    if (flags.bool("leave")) await shadow.leaveOnly();
    else if (flags.bool("check")) await shadow.checkOnly();
    else await shadow.run();
  } catch (error) {
    throw asExit(error, invocation.io);
  }
}

/** Go's durations, and whole days. */
function forMsOf(text: string): number {
  const days = /^(\d{1,4})d$/.exec(text)?.[1];
  const parsed = days === undefined ? parseDuration(text) : Number(days) * DAY_MS;
  if (typeof parsed !== "number" || parsed < 0)
    throw badArguments(`--for is a time such as 7d or 36h, not ${JSON.stringify(text)}`);
  return parsed;
}

interface Times {
  readonly forMs: number;
  readonly everyMs: number;
}

class Shadow {
  readonly #invocation: Invocation;
  readonly #times: Times;
  readonly #config: ServerConfig;
  readonly #asking: JoinAccess;
  #state: ShadowState | undefined;

  private constructor(
    invocation: Invocation,
    times: Times,
    config: ServerConfig,
    asking: JoinAccess,
    state: ShadowState | undefined,
  ) {
    this.#invocation = invocation;
    this.#times = times;
    this.#config = config;
    this.#asking = asking;
    this.#state = state;
  }

  static async of(invocation: Invocation, times: Times): Promise<Shadow> {
    const { flags, io } = invocation;
    const { config } = await shadowConfig(flags, io);
    const access = await accessOf(invocation);
    const peerTls = peerTlsOf(config, io);
    const state = readState(config.dataDir, io);
    const given = flags.strings("join");
    const known = flags.isSet("endpoints") ? [] : (state?.endpoints ?? []);
    const endpoints =
      given.length > 0
        ? await membersEndpoints(given, peerTls)
        : known.length > 0
          ? known
          : await endpointsOf(invocation);
    return new Shadow(invocation, times, config, { endpoints, access, peerTls }, state);
  }

  get #io(): Io {
    return this.#invocation.io;
  }

  get #peerUrls(): readonly string[] {
    return this.#config.advertisePeerUrls.map(({ text }) => text);
  }

  // --- Before ---

  async #examine(): Promise<JoinCheck> {
    const { dataDir, peerTls } = this.#config;
    const certificate =
      peerTls === undefined
        ? undefined
        : { path: peerTls.certFile, pem: text(this.#io, peerTls.certFile) };
    const space = { path: dataDir, freeBytes: nodeDisk.freeBytes(existing(dataDir)) };
    const joiner = { peerUrls: this.#peerUrls, certificate, space };
    const check = await checkJoin(this.#invocation, this.#asking, [joiner]);
    if (hasErrors(check.findings)) return check;
    const path = `${dataDir}/examined.db`;
    writeState(dataDir, this.#state ?? this.#newState());
    const stored = await checkStored(this.#invocation, this.#asking, check.view, path);
    return { ...check, findings: [...stored, ...check.findings] };
  }

  #show({ view, findings, notes }: JoinCheck): void {
    const { flags } = this.#invocation;
    const paint: Paint = paintFor(this.#io, flags.bool("no-color"));
    this.#io.stdout(
      flags.string("write-out") === "json"
        ? jsonReport(view, findings, notes)
        : humanReport(view, findings, notes, paint),
    );
  }

  async checkOnly(): Promise<void> {
    const isNew = this.#state === undefined;
    const check = await this.#examine();
    if (isNew) rmSync(`${this.#config.dataDir}/shadow.json`, { force: true });
    this.#show(check);
    if (hasErrors(check.findings)) throw new Exit(ExitCode.error, "");
  }

  #newState(): ShadowState {
    return {
      name: this.#config.name,
      peerUrls: this.#peerUrls,
      endpoints: this.#asking.endpoints,
      memberId: "",
      startedMs: nodeClock.wallMs(),
      hasLeft: false,
      firstRevision: 0,
      equalThrough: 0,
      equal: 0,
      difference: null,
    };
  }

  #keep(changes: Partial<ShadowState>): ShadowState {
    const state = { ...(this.#state ?? this.#newState()), ...changes };
    this.#state = state;
    writeState(this.#config.dataDir, state);
    return state;
  }

  // --- Joining and leaving ---

  async #withClient<T>(
    endpoints: readonly string[],
    run: (client: Client) => Promise<T>,
  ): Promise<T> {
    const { client } = await clientOf(this.#invocation, endpoints, { access: this.#asking.access });
    try {
      return await run(client);
    } finally {
      client.close();
    }
  }

  /** The member that this shadow is in the list; undefined: it is none. */
  #own(members: readonly ListedMember[]): ListedMember | undefined {
    const id = idFromHex(this.#state?.memberId ?? "");
    const { peerUrls = this.#peerUrls } = this.#state ?? {};
    return members.find(({ ID, isLearner, peerURLs }) =>
      id === undefined ? isLearner && peerURLs.some((url) => peerUrls.includes(url)) : ID === id,
    );
  }

  /** Adds the learner, unless that was done before. */
  async #join(): Promise<ServerConfig> {
    const { endpoints } = this.#asking;
    let members = await this.#withClient(endpoints, async (client) => {
      return (await client.memberList()).members;
    });
    let own = this.#own(members);
    if (own === undefined && (this.#state?.memberId ?? "") !== "")
      throw new Exit(
        ExitCode.error,
        `the learner ${this.#state?.memberId} is not in the cluster any more: remove ${this.#config.dataDir} and start again`,
      );
    if (own === undefined) {
      this.#keep({ endpoints });
      const added = await this.#withClient(endpoints, (client) => this.#add(client));
      members = added.members;
      own = added.member;
    }
    if (own === undefined) throw new Exit(ExitCode.error, "the cluster added no member");
    const id = own.ID;
    this.#keep({ memberId: idToHex(id) });
    return joining(
      this.#config,
      members.map(({ ID, peerURLs }) => ({
        name: ID === id ? this.#config.name : `member-${idToHex(ID)}`,
        peerUrls: peerURLs,
      })),
    );
  }

  /** etcd refuses while a voter has not been connected for five seconds. */
  async #add(client: Client): Promise<MemberAddResponse> {
    const endMs = nodeClock.monotonicMs() + ADD_WITHIN_MS;
    for (;;) {
      try {
        return await client.memberAdd(this.#peerUrls, { isLearner: true });
      } catch (error) {
        const isEarly = (error as { code?: string }).code === "Unhealthy";
        if (!isEarly || nodeClock.monotonicMs() > endMs) throw error;
        await this.#io.sleep(RETRY_MS);
      }
    }
  }

  /** Removes the learner; tries until it is gone or the time is up. Throws Exit. */
  async #leave(endpoints: readonly string[]): Promise<void> {
    const endMs = nodeClock.monotonicMs() + LEAVE_WITHIN_MS;
    for (;;) {
      try {
        await this.#withClient(endpoints, async (client) => {
          const own = this.#own((await client.memberList()).members);
          if (own !== undefined) await client.memberRemove(own.ID);
        });
        this.#keep({ hasLeft: true });
        return;
      } catch (error) {
        if (nodeClock.monotonicMs() > endMs)
          throw new Exit(
            ExitCode.error,
            `the learner could not be removed: ${(error as Error).message}; ` +
              "run the same command with --leave when the cluster responds",
          );
        await this.#io.sleep(RETRY_MS);
      }
    }
  }

  async leaveOnly(): Promise<void> {
    const { endpoints } = this.#asking;
    const found = await this.#withClient(endpoints, async (client) => {
      const own = this.#own((await client.memberList()).members);
      if (own !== undefined && !own.isLearner)
        throw new Exit(
          ExitCode.error,
          `${own.name} is a voter now: whoever promoted it removes it ("quoratectl member remove ${idToHex(own.ID)}")`,
        );
      if (own !== undefined) await client.memberRemove(own.ID);
      return own;
    });
    if (this.#state !== undefined) this.#keep({ hasLeft: true });
    this.#io.stdout(
      found === undefined
        ? "There is no such learner in the cluster: it has left already.\n"
        : `The learner ${idToHex(found.ID)} (${found.peerURLs.join(",")}) has left the cluster.\n`,
    );
  }

  // --- The run ---

  async run(): Promise<void> {
    if (this.#state?.hasLeft === true)
      throw new Exit(
        ExitCode.error,
        `${this.#config.dataDir} is of a shadow that has left: remove it, or choose another --data-dir`,
      );
    if ((this.#state?.memberId ?? "") === "") {
      const check = await this.#examine();
      if (check.findings.length > 0) this.#show(check);
      if (hasErrors(check.findings))
        throw new Exit(ExitCode.error, "nothing was changed: mend the errors above first");
    }
    const config = await this.#join();
    const level = this.#invocation.flags.string("log-level") as "info";
    const logger = nodeLogger({ level, outputs: ["stderr"], format: "auto" });
    try {
      await this.#follow(config, logger);
    } finally {
      logger.close();
    }
  }

  async #follow(config: ServerConfig, logger: NodeLogger): Promise<void> {
    const { flags } = this.#invocation;
    const state = this.#keep({});
    const ended = Promise.withResolvers<string>();
    let call: PeerCall | undefined;
    const following = new Following(
      {
        name: config.name,
        everyMs: this.#times.everyMs,
        isHex: flags.bool("hex"),
        limits: { ...USUAL, versionProblem: () => undefined },
      },
      {
        clock: nodeClock,
        logger: logger.child("shadow"),
        call: (...question) => (call ?? noCall)(...question),
        clientAt: async (endpoint) =>
          (await clientOf(this.#invocation, [endpoint], { access: this.#asking.access })).client,
        changed: () => this.#write(following),
      },
      state,
    );
    const held = { incoming: 0, outgoing: 0 };
    let stops = 0;
    const forget = this.#io.onStop((signal) => {
      stops++;
      if (stops > 1) process.exit(ExitCode.error);
      ended.resolve(`received ${signal}`);
    });
    let serving: ServingMember | undefined;
    let reason: string;
    let failure: unknown;
    try {
      serving = await serve(config, {
        clock: nodeClock,
        logger,
        logCounts: () => logger.counts(),
        adapt: (deps) => {
          call = deps.callPeer;
          const observer = {
            leaderChanged: () => {},
            alarmsChanged: () => {},
            entryApplied: following.entryApplied,
          };
          return quiet({ ...deps, observer }, held);
        },
        metricsPages: (member) => {
          following.declare(member.metrics.registry);
          return shadowPages(() => following.report());
        },
        onEnd: (error) => {
          failure ??= error;
          ended.resolve(error === undefined ? "removed by another" : String(error));
        },
      });
      const timer = this.#endAfter(state, () => ended.resolve("--for is over"));
      const watch = nodeClock.every(RETRY_MS, () => {
        if (isPromoted(serving?.member)) ended.resolve("promoted by another");
      });
      void following.run(serving.member).catch((error) => ended.resolve(String(error)));
      reason = await ended.promise;
      timer?.cancel();
      watch.cancel();
    } catch (error) {
      failure = error;
      reason = (error as Error).message;
    }
    logger.info("the shadow leaves", { reason });
    following.phase = "leaving";
    following.reason = reason;
    if (failure === undefined && reason !== "removed by another") await following.last();
    following.stop();
    const endpoints = following.endpoints;
    try {
      await this.#leave(endpoints.length > 0 ? endpoints : this.#asking.endpoints);
      following.phase = "left";
    } finally {
      if (following.phase !== "left") following.phase = "ended";
      this.#write(following);
      forget();
      await serving?.stop().catch(() => {});
    }
    this.#end(following, failure, held);
  }

  #end(
    following: Following,
    failure: unknown,
    held: { readonly incoming: number; readonly outgoing: number },
  ): void {
    const { verdict } = following.report();
    this.#io.stdout(`${verdict}; the learner has left the cluster (${following.reason}).\n`);
    if (held.incoming > 0)
      this.#io.stderr(
        `${held.incoming} proposals that came to the peer port were not passed on.\n`,
      );
    if (failure !== undefined)
      throw new Exit(ExitCode.error, `the shadow ended: ${(failure as Error).message}`);
    if (following.difference !== null || following.reason.endsWith("by another"))
      throw new Exit(ExitCode.error, "");
  }

  /** The timer of --for, counted from the first start. */
  #endAfter({ startedMs }: ShadowState, over: () => void) {
    const { forMs } = this.#times;
    if (forMs === 0) return undefined;
    const endMs = startedMs + forMs;
    const tick = (): void => {
      if (nodeClock.wallMs() >= endMs) over();
    };
    tick();
    return nodeClock.every(RETRY_MS, tick);
  }

  /** Writes the state and the report. Never throws: a full disk ends the member by itself. */
  #write(following: Following): void {
    const { endpoints, progress } = following;
    try {
      this.#keep({ ...progress, ...(endpoints.length > 0 ? { endpoints } : {}) });
      const path = this.#invocation.flags.string("report");
      if (path !== "")
        writeWholeFile(path, `${JSON.stringify(following.report(), null, 2)}\n`, REPORT_MODE);
    } catch (error) {
      this.#io.stderr(`the report was not written: ${(error as Error).message}\n`);
    }
  }
}

const noCall: PeerCall = () => Promise.reject(new Error("the member has not started"));

/** Whether the shadow has become a voter: it was one of the learners before. */
function isPromoted(member: Member | undefined): boolean {
  const own = member?.store.membership.member(member.id);
  return own !== undefined && !own.isLearner;
}

function text(io: Io, path: string): string {
  try {
    return Buffer.from(io.readFile(path)).toString();
  } catch (error) {
    throw badArguments(`open ${path}: ${(error as Error).message}`);
  }
}

/** TLS towards the peer ports; undefined without. */
function peerTlsOf({ peerTls }: ServerConfig, io: Io): JoinAccess["peerTls"] {
  if (peerTls === undefined) return undefined;
  const { certFile, keyFile, trustedCaFile } = peerTls;
  const bytes = (path: string) => Buffer.from(text(io, path));
  return {
    cert: bytes(certFile),
    key: bytes(keyFile),
    ...(trustedCaFile === "" ? {} : { ca: bytes(trustedCaFile) }),
  };
}

/** The nearest directory above that is there. */
function existing(path: string): string {
  for (let at = path; ; at = at.slice(0, at.lastIndexOf("/"))) {
    if (at === "" || !at.includes("/"))
      return at.startsWith("/") || path.startsWith("/") ? "/" : ".";
    if (nodeDisk.stat(at) !== undefined) return at;
  }
}
