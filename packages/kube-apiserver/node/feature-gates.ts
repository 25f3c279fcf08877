/** Feature gates, by kube-apiserver's names (apiserver: pkg/features). */
import { FlagRefusal } from "@quorate/cli";
import { goBool } from "@quorate/proto";

/** Those that this server has, with the gate that sets all of their stage. */
const GATES = {
  /** Lists and watches of shards (shardSelector). */
  ShardedListAndWatch: { stage: "AllAlpha", isOn: false },
  /** Lists are read from the cluster as streams (etcd 3.7). */
  EtcdRangeStream: { stage: "AllBeta", isOn: true },
} as const;

export type FeatureGates = { readonly [name in keyof typeof GATES]: boolean };

/** As long as no flag says otherwise. */
export const DEFAULT_GATES: FeatureGates = gatesOf([]);

const KNOWN: ReadonlySet<string> = new Set(
  Object.entries(GATES).flatMap(([name, { stage }]) => [name, stage]),
);

/** @param texts Name=true or Name=false each; the last one counts. Throws FlagRefusal. */
export function gatesOf(texts: readonly string[]): FeatureGates {
  const set = new Map(texts.map(settingOf));
  const isOn = (name: keyof FeatureGates): boolean =>
    set.get(name) ?? set.get(GATES[name].stage) ?? GATES[name].isOn;
  return {
    ShardedListAndWatch: isOn("ShardedListAndWatch"),
    EtcdRangeStream: isOn("EtcdRangeStream"),
  };
}

/** The names among the settings that steer nothing here. */
export function unusedGates(texts: readonly string[]): string[] {
  return texts.map((text) => settingOf(text)[0]).filter((name) => !KNOWN.has(name));
}

function settingOf(text: string): readonly [name: string, isOn: boolean] {
  const at = text.indexOf("=");
  const refused = (why: string): FlagRefusal =>
    new FlagRefusal(`invalid argument ${JSON.stringify(text)} for "--feature-gates" flag: ${why}`);
  if (at === -1) throw refused(`missing bool value for ${text}`);
  const [name, value] = [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  const isOn = goBool(value);
  if (isOn !== undefined) return [name, isOn];
  const quoted = JSON.stringify(value);
  throw refused(
    `invalid value of ${name}: ${value}, err: strconv.ParseBool: parsing ${quoted}: invalid syntax`,
  );
}
