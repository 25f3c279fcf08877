/** The command `./dev compare accounts`: service accounts of pods, beside kube-apiserver. */
import { DEFAULT_PLUGINS } from "../../../src/admission/plugin-names.ts";
import { comparePlay, onOurs } from "../comparison.ts";
import { play } from "./play.ts";

const HELP = `./dev compare accounts [OPTIONS]

Creates pods of service accounts on a new API server of ours, and compares what is set and what is
refused with kube-apiserver 1.36.`;

const plugins = new Set(DEFAULT_PLUGINS);
await comparePlay(HELP, import.meta.dirname, play, onOurs({ plugins, controllers: [] }));
