/** Clients that list and get, and compare each result with the history. */
import type { Random } from "@quorate/host";
import type { ListOptions, ListResult } from "../../../src/storage/interface.ts";
import type { StoredObject } from "../../../src/storage/stored-object.ts";
import type { Interest, Seen } from "../support/history.ts";
import { predicateOf } from "../support/world.ts";
import { expectedCode, pick, type Run } from "./actor.ts";

/** What a read may meet without a fault of the cache. */
const REFUSALS = new Set(["Unreachable", "TooManyRequests", "TooLargeResourceVersion", "Timeout"]);

/** Reads until the run is over. */
export async function read(run: Run, random: Random): Promise<void> {
  while (!run.isOver) {
    try {
      await pick(random, [listLatest, listNotOlder, listExact, listPages, getOne])(run, random);
    } catch (error) {
      const code = expectedCode(error);
      const isOld = code === "TooOldResourceVersion" || code === "Expired";
      if (!REFUSALS.has(code) && !isOld) run.problem(`a read failed: ${code}`);
      run.count(isOld ? "reads too old" : "reads refused");
    }
    await run.pause(random.below(120));
  }
}

const textOf = (stored: StoredObject) => new TextDecoder().decode(stored.json());

/** Compares with the objects that the history had at the list's revision. */
function judgeItems(
  run: Run,
  what: string,
  { items, resourceVersion }: ListResult,
  wanted: readonly Seen[],
): void {
  run.count(what);
  const same =
    items.length === wanted.length &&
    items.every((item, i) => item.key === wanted[i].key && textOf(item) === wanted[i].text);
  if (same) return;
  const text = (list: readonly { key: string }[]) => list.map(({ key }) => key).join(" ");
  run.problem(`${what} at ${resourceVersion} has ${text(items)}; wanted: ${text(wanted)}`);
}

function listOptions(
  { key, color, node }: Interest,
  more: Partial<ListOptions>,
  limit = 0,
  continueToken = "",
): ListOptions {
  return {
    resourceVersion: "",
    resourceVersionMatch: "",
    recursive: key.endsWith("/"),
    predicate: predicateOf({ color, node }, { limit, continueToken }),
    ...more,
  };
}

/** A revision around the present one. */
function someRevision(run: Run, random: Random): number {
  return Math.max(1, run.history.revision - random.below(40) + random.below(3));
}

async function listLatest(run: Run, random: Random): Promise<void> {
  const interest = run.interest(random);
  const before = run.history.revision;
  const { cacher } = run.server(random);
  const list = await cacher.getList(interest.key, listOptions(interest, {}));
  if (list.resourceVersion < before)
    run.problem(`a consistent list at ${list.resourceVersion}, begun at ${before}`);
  judgeItems(run, "consistent list", list, run.history.stateAt(list.resourceVersion, interest));
}

async function listNotOlder(run: Run, random: Random): Promise<void> {
  const interest = run.interest(random);
  const least = random.below(3) === 0 ? 0 : someRevision(run, random);
  const resourceVersionMatch = random.below(2) === 0 ? "" : "NotOlderThan";
  const { cacher } = run.server(random);
  const options = listOptions(interest, { resourceVersion: String(least), resourceVersionMatch });
  const list = await cacher.getList(interest.key, options);
  if (list.resourceVersion < least)
    run.problem(`a list at ${list.resourceVersion}, not older than ${least}`);
  judgeItems(run, "list", list, run.history.stateAt(list.resourceVersion, interest));
}

async function listExact(run: Run, random: Random): Promise<void> {
  const interest = { ...run.interest(random), key: "/widgets/" };
  const revision = someRevision(run, random);
  const { cacher } = run.server(random);
  const options = listOptions(interest, {
    resourceVersion: String(revision),
    resourceVersionMatch: "Exact",
  });
  const list = await cacher.getList(interest.key, options).catch((error) => {
    const code = expectedCode(error);
    if (code === "TooOldResourceVersion" && revision >= run.history.compactRevision)
      run.problem(`${revision} is too old, compacted is ${run.history.compactRevision}`);
    throw error;
  });
  if (list.resourceVersion !== revision)
    run.problem(`a list at ${list.resourceVersion}, exactly ${revision}`);
  judgeItems(run, "exact list", list, run.history.stateAt(revision, interest));
}

async function listPages(run: Run, random: Random): Promise<void> {
  const interest = { ...run.interest(random), key: "/widgets/" };
  const before = run.history.revision;
  const limit = 1 + random.below(6);
  const items: StoredObject[] = [];
  let continueToken = "";
  let revision = 0;
  do {
    const { cacher } = run.server(random);
    const options = listOptions(interest, {}, limit, continueToken);
    const page = await cacher.getList(interest.key, options);
    if (page.items.length > limit) run.problem(`a page of ${page.items.length}, limit ${limit}`);
    if (revision === 0) revision = page.resourceVersion;
    if (page.resourceVersion !== revision)
      run.problem(`a page at ${page.resourceVersion}, the first one at ${revision}`);
    items.push(...page.items);
    judgeRemaining(run, interest, page, items.length);
    ({ continueToken } = page);
    if (continueToken !== "") await run.pause(random.below(200));
  } while (continueToken !== "");
  if (revision < before) run.problem(`pages at ${revision}, begun at ${before}`);
  const wanted = run.history.stateAt(revision, interest);
  judgeItems(
    run,
    "list in pages",
    { items, resourceVersion: revision, continueToken: "", remainingItemCount: undefined },
    wanted,
  );
}

function judgeRemaining(run: Run, interest: Interest, page: ListResult, seen: number): void {
  const { remainingItemCount, continueToken, resourceVersion } = page;
  const isAll = interest.color === "" && interest.node === "";
  if (continueToken === "" || !isAll) {
    if (remainingItemCount !== undefined) run.problem("a count of the rest that is not known");
    return;
  }
  const rest = run.history.stateAt(resourceVersion, interest).length - seen;
  if (remainingItemCount !== rest)
    run.problem(`${remainingItemCount} objects remain, it should be ${rest}`);
}

async function getOne(run: Run, random: Random): Promise<void> {
  const key = run.key(random);
  const isLatest = random.below(3) === 0;
  const least = isLatest ? run.history.revision : someRevision(run, random);
  const { cacher } = run.server(random);
  const stored = await cacher.get(key, {
    resourceVersion: isLatest ? "" : String(least),
    ignoreNotFound: true,
  });
  run.count("gets");
  const interest = { key, color: "", node: "" };
  const found = stored === undefined ? "" : textOf(stored);
  for (let revision = least; revision <= run.history.revision; revision++) {
    const [state] = run.history.stateAt(revision, interest);
    if ((state?.text ?? "") === found) return;
  }
  run.problem(`get of ${key} not older than ${least} is ${found || "nothing"}`);
}
