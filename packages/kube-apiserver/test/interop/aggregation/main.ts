/** The command `./dev compare aggregation`: other API servers, beside kube-apiserver. */
import { comparePlay } from "../comparison.ts";
import { play, withOurs } from "./play.ts";

const HELP = `./dev compare aggregation [OPTIONS]

Creates APIServices of another server on a new API server of ours, sends requests that go on to it,
and compares the answers with those of kube-apiserver 1.36.`;

await comparePlay(HELP, import.meta.dirname, play, withOurs);
