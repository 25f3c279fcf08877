/** Parts of the console that the tests of other packages look at. */
export { MAX_BODY_BYTES, MAX_RUNNING_CALLS } from "../src/api.ts";
export { MAX_CHANGES } from "../src/changes.ts";
export { MAX_CHILDREN } from "../src/children.ts";
export { MAX_DECODED_BYTES } from "../src/decode.ts";
export { MAX_ANSWER_LINES, MAX_FIELD_CHARS, MAX_LOG_LINES } from "../src/log-ring.ts";
export { folderOf } from "../src/names.ts";
export { MAX_REPORT_BYTES } from "../src/overview.ts";
export { COLUMNS, MAX_SAMPLES, quantile, Rates, SAMPLE_MS } from "../src/rates.ts";
export { MAX_FOLDER_CHARS, MAX_FOLDERS } from "../src/top.ts";
