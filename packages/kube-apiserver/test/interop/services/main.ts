/** The command `./dev compare services`: addresses and ports of Services, beside kube-apiserver. */
import { comparePlay, onOurs } from "../comparison.ts";
import { play } from "./play.ts";

const HELP = `./dev compare services [OPTIONS]

Creates, changes and deletes Services on a new API server of ours, and compares the addresses and
ports that they are given, and what is refused, with kube-apiserver 1.36.`;

await comparePlay(HELP, import.meta.dirname, play, onOurs({ controllers: [] }));
