/**
 * Loaded before a program (--import): plants the changes of the source that QUORATE_PLANTED holds
 * as JSON, in this thread.
 */
import { plantEdit, type SourceEdit } from "@quorate/host/testing";

const text = process.env["QUORATE_PLANTED"];
for (const edit of text === undefined ? [] : (JSON.parse(text) as SourceEdit[])) plantEdit(edit);
