/** The command `./dev compare quotas`: ResourceQuotas, beside kube-apiserver. */
import { comparePlay, onOurs } from "../comparison.ts";
import { play } from "./play.ts";

const HELP = `./dev compare quotas [OPTIONS]

Creates objects under ResourceQuotas on a new API server of ours, and compares what is refused and what
the quotas say is used with kube-apiserver 1.36, both without controllers.`;

await comparePlay(HELP, import.meta.dirname, play, onOurs({ controllers: [] }));
