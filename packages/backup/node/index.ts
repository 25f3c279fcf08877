/** Recording a continuous backup of a running cluster. */
export { Recorder, type RecorderDeps, type RecorderOptions } from "./recorder.ts";
