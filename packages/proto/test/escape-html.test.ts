import assert from "node:assert/strict";
import { test } from "node:test";
import { escapeHtml } from "@quorate/proto";

test("characters that HTML gives a meaning are escaped, and others stay", () => {
  assert.equal(
    escapeHtml(`<a b="c" d='e'>&amp; ü\n`),
    "&lt;a b=&#34;c&#34; d=&#39;e&#39;&gt;&amp;amp; ü\n",
  );
  assert.equal(escapeHtml(`"x" <y>`, /[&<>]/g), `"x" &lt;y&gt;`);
});
