/** Parts of http-kv that the tests of other packages look at. */
export { KEPT_LOGIN_MS, MAX_KEPT_LOGINS } from "../src/credentials.ts";
export {
  EventFrames,
  EventLines,
  MAX_LINES_IN_TURN,
  MAX_SHARED_LINES,
} from "../src/event-stream.ts";
export { Heartbeats, MAX_BEATS_IN_TURN } from "../src/heartbeats.ts";
export { MAX_JSON_VALUES, MAX_PLAIN_DEPTH, parsePlainJson } from "../src/plain-json.ts";
export { MAX_TAGS } from "../src/preconditions.ts";
export { PROBLEMS } from "../src/problems.ts";
export { KEEP_ALIVE_MS } from "../src/watch.ts";
