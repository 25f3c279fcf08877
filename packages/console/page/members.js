/** Members: role, lag, disk, sync time, versions, certificates, and alarms with what to do. */
import { own, session } from "./api.js";
import { bytesText, countText, h, msText, spanText, table } from "./dom.js";

const DAY_MS = 86_400_000;
/** Entries behind the leader from which on a member is marked. */
const MUCH_LAG = 1000;
/** A sync of the log takes this long on a disk that is too slow for a member. */
const SLOW_SYNC_MS = 100;

const ADVICE = {
  NOSPACE:
    "The store is full: it takes no writes but deletions. Compact it (quoratectl compact REVISION), " +
    "wait or defragment (quoratectl defrag), and disarm the alarm (quoratectl alarm disarm).",
  CORRUPT:
    "The member's data differs from that of the others. Do not disarm the alarm: replace the " +
    "member (quoratectl member replace), or start it with --self-heal.",
};

export function show(root, { every }) {
  return every(3000, async () => {
    const cluster = await own("overview");
    session.isAuthOn = cluster.isAuthOn;
    root.replaceChildren(...alarms(cluster), members(cluster), ...silent(cluster));
  });
}

function nameOf({ members: all }, id) {
  const found = all.find((one) => one.id === id);
  return found === undefined ? id : found.name || id;
}

function alarms(cluster) {
  return cluster.alarms.map(({ member, alarm }) =>
    h(
      "div",
      { class: "notice bad" },
      h("strong", {}, `Alarm ${alarm} of ${nameOf(cluster, member)}. `),
      ADVICE[alarm] ?? "",
    ),
  );
}

function silent({ members: all }) {
  const away = all.filter(({ report }) => report === undefined);
  const quorum = Math.floor(all.filter(({ isLearner }) => !isLearner).length / 2) + 1;
  return away.map(({ name, id, error }) =>
    h(
      "div",
      { class: "notice" },
      h("strong", {}, `${name || id} does not report: `),
      `${error}. ${quorum} members must run for writes. If its machine is gone, replace it: `,
      "quoratectl member replace.",
    ),
  );
}

function members(cluster) {
  const leader = cluster.members.find(({ report }) => report?.role === "leader")?.report;
  const columns = [
    ["Member"],
    ["Role"],
    ["Lag", "number"],
    ["Store", "number"],
    ["Disk free", "number"],
    ["Sync (99 %)", "number"],
    ["Keys", "number"],
    ["Versions"],
    ["Certificates end"],
    ["Up", "number"],
  ];
  return table(
    columns,
    cluster.members.map((one) => row(cluster, leader, one)),
  );
}

function row(cluster, leader, { id, name, clientUrls, isLearner, report }) {
  const title = [id, ...clientUrls].join("\n");
  const head = h("span", { title }, name || id, id === cluster.self ? " (this one)" : "");
  const lag = lagOf(leader, id, report);
  const shownLag = h("span", { class: lag > MUCH_LAG ? "warn" : undefined }, countText(lag));
  if (report === undefined) {
    const role = h("span", { class: "bad" }, isLearner ? "learner, silent" : "silent");
    return [head, role, shownLag, "–", "–", "–", "–", "–", "–", "–"];
  }
  const { sizeBytes, quotaBytes, syncMs, version, etcdVersion, clusterVersion } = report;
  const full = quotaBytes > 0 ? sizeBytes / quotaBytes : 0;
  const isGood = report.leader !== "" && !report.isHealing;
  const role = report.isHealing ? "rebuilds its store" : report.role;
  return [
    head,
    h("span", { class: isGood ? "good" : "bad" }, role, ` (term ${report.term})`),
    shownLag,
    h(
      "span",
      { class: full > 0.8 ? "warn" : undefined },
      bytesText(sizeBytes),
      quotaBytes > 0 ? ` of ${bytesText(quotaBytes)}` : "",
    ),
    bytesText(report.freeBytes),
    h("span", { class: syncMs > SLOW_SYNC_MS ? "warn" : undefined }, msText(syncMs)),
    countText(report.keys),
    `${version} (etcd ${etcdVersion}; cluster ${clusterVersion || "–"})`,
    certificates(report),
    spanText(report.nowMs - report.startedMs),
  ];
}

function lagOf(leader, id, report) {
  if (leader === undefined) return undefined;
  if (report !== undefined) return Math.max(0, leader.commitIndex - report.appliedIndex);
  const known = leader.progress.find((one) => one.id === id);
  return known === undefined ? undefined : Math.max(0, leader.commitIndex - known.match);
}

function certificates({ certificates: all, nowMs }) {
  if (all.length === 0) return h("span", { class: "faint" }, "no TLS");
  return all.map(({ role, endsMs }) => {
    const left = endsMs - nowMs;
    const kind = left < 7 * DAY_MS ? "bad" : left < 30 * DAY_MS ? "warn" : undefined;
    const title = new Date(endsMs).toISOString();
    const text = left < 0 ? `${role}: ended` : `${role}: in ${spanText(left)}`;
    return h("div", { class: kind, title }, text);
  });
}
