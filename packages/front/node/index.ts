/** The front-ends' threads: those that a member starts, and what runs in one. */
export {
  FrontThreads,
  MAX_UNREAD_SOCKETS,
  MAX_WAITING_SOCKETS,
  SILENT_MS,
  START_LIMIT_MS,
} from "./front-threads.ts";
export { runFront } from "./run-front.ts";
