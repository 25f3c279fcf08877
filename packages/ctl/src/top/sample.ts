/** What top sees of a cluster at one time. */
import type { Client } from "@quorate/client";
import type { StatusResponse } from "@quorate/proto";
import { type ClientTls, httpGet } from "../observe/http.ts";
import { MetricsText } from "../observe/metrics-text.ts";
import { findPlaces, firstAnswer, labelOf, type Place, targetOf } from "../observe/places.ts";

/** One member. */
export interface MemberSample {
  readonly label: string;
  /** When its metrics came, in monotonic milliseconds; rates are counted between two of these. */
  readonly atMs: number;
  readonly status: StatusResponse | undefined;
  /** Why there is no status. */
  readonly failure: string | undefined;
  readonly metrics: MetricsText | undefined;
}

export interface Sample {
  /** This machine's clock, in milliseconds since 1970. */
  readonly wallMs: number;
  readonly members: readonly MemberSample[];
}

/** How members are reached. */
export interface SampleOptions {
  readonly endpoints: readonly string[];
  readonly tls: ClientTls | undefined;
  readonly timeoutMs: number;
  /** Monotonic. */
  readonly nowNs: () => bigint;
}

/** Looks at every member at once. Never rejects for what is wrong with members. */
export async function takeSample(client: Client, options: SampleOptions): Promise<Sample> {
  const { places } = await findPlaces(client, options.endpoints);
  const members = await Promise.all(places.map((place) => sampleOf(client, place, options)));
  return { wallMs: Date.now(), members };
}

async function sampleOf(client: Client, place: Place, { tls, timeoutMs, nowNs }: SampleOptions): Promise<MemberSample> {
  const found = place.status ?? (await firstAnswer(client, place.endpoints));
  const failure = found === undefined ? "never started" : "failure" in found ? found.failure : undefined;
  const target = found === undefined || failure !== undefined ? undefined : targetOf(found.endpoint, tls);
  const scrape = target === undefined ? undefined : await httpGet(target, "/metrics", tls, timeoutMs).catch(() => undefined);
  return {
    label: labelOf(place),
    atMs: Number(nowNs() / 1000n) / 1000,
    status: found !== undefined && "answer" in found ? found.answer : undefined,
    failure,
    metrics: scrape?.status === 200 ? new MetricsText(scrape.body) : undefined,
  };
}
