/** A disk in memory for tests that drive Raft by hand, and for random clusters. */
export { type DiskRecord, emptyConfState, type MachineState, SimDisk } from "./disk.ts";
