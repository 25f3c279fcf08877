/** Compares results with those of the reference. */
import { sameJson } from "@quorate/kube-storage";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns what differs, or undefined. Of errors of patches, only the status counts: clients do not
 * see Go's texts, or they depend on the order of Go's maps.
 */
export function difference(type: string, ours: unknown, theirs: unknown): string | undefined {
  if (type !== "history") {
    // Go breaks down on some lists of maps where it expects scalars.
    if (String((theirs as Fields)["error"]).startsWith("panic")) return undefined;
    const [mine, other] = [ours as Fields, theirs as Fields];
    const bothFail = "error" in mine && "error" in other;
    if (bothFail && (other["code"] === undefined || mine["code"] === other["code"])) {
      return undefined;
    }
    return sameJson(plain(mine["value"]), other["value"]) && !("error" in mine)
      ? undefined
      : "result";
  }
  const [mine, others] = [ours as Fields[], theirs as Fields[]];
  for (let at = 0; at < others.length; at++) {
    if (!sameJson(plain(sorted(mine[at])), plain(sorted(others[at])))) return `step ${at}`;
  }
  return undefined;
}

function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/** The causes of conflicts come in the order of Go's maps. */
function sorted(result: Fields): Fields {
  const status = result["status"] as { details?: { causes?: unknown[] } } | undefined;
  const causes = status?.details?.causes;
  if (causes === undefined)
    return { ...result, ...(status && { status: { ...status, details: {} } }) };
  const texts = causes.map((cause) => JSON.stringify(cause, ["reason", "message", "field"])).sort();
  return { ...result, status: { ...status, details: { causes: texts } } };
}
