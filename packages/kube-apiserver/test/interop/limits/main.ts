/** The command `./dev compare limits`: LimitRanges, beside kube-apiserver. */
import { comparePlay } from "../comparison.ts";
import { play } from "./play.ts";

const HELP = `./dev compare limits [OPTIONS]

Creates LimitRanges, pods and claims on a new API server of ours, and compares what is set and what
is refused with kube-apiserver 1.36.`;

await comparePlay(HELP, import.meta.dirname, play);
