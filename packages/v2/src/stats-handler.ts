/**
 * /v2/stats/{self,leader,store} (etcd 3.4: etcdserver/api/v2stats). They show what the status of v3
 * shows, so they need a user where users are enforced.
 */
import type { HttpExchangeHandler, HttpResponse } from "@quorate/host";
import type { Member } from "@quorate/member";
import { callerOf } from "@quorate/member";
import type { Histogram } from "@quorate/metrics";
import { fromUtf8, idToHex, MaintenanceService, toLatin1 } from "@quorate/proto";
import type { StoreCounters } from "./counters.ts";
import { messageError, served } from "./http.ts";
import { goString, goTime } from "./json.ts";
import { answer, type MembersDeps } from "./members-handler.ts";

/** Serves the statistics, by path. */
export function statsHandlers(
  { member, to }: MembersDeps,
  counters: StoreCounters,
): ReadonlyMap<string, HttpExchangeHandler> {
  const { path } = MaintenanceService.methods.Status;
  const startedMs = member.clock.wallMs();
  const leader = { id: 0n, sinceMs: startedMs };
  const serve = (respond: () => HttpResponse) =>
    served(["GET"], 0, (it) =>
      answer({ to }, it, async (caller) => {
        await member.permit(callerOf(caller.context(path)), { kind: "status" });
        return respond();
      }),
    );
  return new Map([
    ["/v2/stats/store", serve(() => json(counters.json(member.metrics.leasesExpired.value)))],
    ["/v2/stats/self", serve(() => json(selfStats(member, startedMs, leader)))],
    [
      "/v2/stats/leader",
      serve(() =>
        member.isLeader ? json(leaderStats(member)) : messageError(403, "not current leader"),
      ),
    ],
  ]);
}

function json(body: string): HttpResponse {
  return { status: 200, headers: { "content-type": "application/json" }, body };
}

/** @param leader what was seen of it last: its time counts from the first request that sees it */
function selfStats(
  member: Member,
  startedMs: number,
  leader: { id: bigint; sinceMs: number },
): string {
  const nowMs = member.clock.wallMs();
  if (leader.id !== member.leader) {
    leader.sinceMs = leader.id === 0n ? startedMs : nowMs;
    leader.id = member.leader;
  }
  const uptime = `${(Math.max(0, nowMs - leader.sinceMs) / 1000).toFixed(3)}s`;
  const state = member.isLeader ? "StateLeader" : "StateFollower";
  const name = goString(toLatin1(fromUtf8(member.config.name)));
  const id = member.leader === 0n ? "" : idToHex(member.leader);
  const since = `"uptime":"${uptime}","startTime":"${goTime(leader.sinceMs)}"`;
  return (
    `{"name":${name},"id":"${idToHex(member.id)}","state":"${state}",` +
    `"startTime":"${goTime(startedMs)}","leaderInfo":{"leader":"${id}",${since}},` +
    '"recvAppendRequestCnt":0,"sendAppendRequestCnt":0}'
  );
}

function leaderStats(member: Member): string {
  const followers = member.reconfiguration
    .members()
    .filter(({ id }) => id !== member.id)
    .map(({ id }) => {
      const hex = idToHex(id);
      return `"${hex}":${followerStats(member.metrics.peerRoundTrip.with(hex))}`;
    });
  return `{"leader":"${idToHex(member.id)}","followers":{${followers.join(",")}}}`;
}

/** The round trips to a follower in milliseconds, as their histogram has them. */
function followerStats({ bounds, counts, sum, count }: Histogram): string {
  const average = count === 0 ? 0 : (sum / count) * 1000;
  const low = (bucket: number) => (bounds[bucket - 1] ?? 0) * 1000;
  const high = (bucket: number) => (bounds[bucket] ?? bounds.at(-1) ?? 0) * 1000;
  const first = counts.findIndex((n) => n > 0);
  const last = counts.findLastIndex((n) => n > 0);
  const square = counts.reduce((total, n, bucket) => {
    const middle = (low(bucket) + high(bucket)) / 2;
    return total + n * (middle - average) ** 2;
  }, 0);
  const deviation = count === 0 ? 0 : Math.sqrt(square / count);
  const minimum = first < 0 ? 0 : low(first);
  const maximum = last < 0 ? 0 : high(last);
  return (
    `{"latency":{"current":${average},"average":${average},"standardDeviation":${deviation},` +
    `"minimum":${minimum},"maximum":${maximum}},"counts":{"fail":0,"success":${count}}}`
  );
}
