/**
 * docs/operate/operations.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runGuide, skipGuides } from "./guide.ts";

test("the commands of the operations guide do what it says", { skip: skipGuides }, async () => {
  const { printed } = await runGuide("operate/operations.md");
  assert.match(printed("endpoint status --cluster"), /(│ http:\/\/127\.0\.0\.\d:2379 [^\n]*\n){3}/);
  assert.equal(printed("doctor --restart-safe m2"), "It is safe to restart m2 now.\n");
  assert.match(
    printed("doctor --restart-safe m3"),
    /^It is safe to restart m3 now\.\n("Version" : "3\.7\.0"\n){3}$/,
  );
  assert.match(
    printed("member add m4"),
    /^Member +[0-9a-f]+ added as learner to cluster +[0-9a-f]+\n\nETCD_NAME="m4"\n/,
  );
  assert.match(
    printed("', m4, .*false"),
    /started │ +m4 │ http:\/\/127\.0\.0\.4:2380 .* false │\n/,
  );
  const replace = printed("member replace m1");
  assert.equal(replace.match(/Start it with these variables/g)?.length, 1, replace);
  assert.match(
    printed("move-leader"),
    /removed from cluster +[0-9a-f]+\nLeadership transferred from +[0-9a-f]+ to +[0-9a-f]+\n$/,
  );
  assert.match(printed("snapshot save"), /^Snapshot saved at today\.db\n[\s\S]*│ +2 │ +1 │/);
  assert.match(
    printed("backup run"),
    /base snapshot at revision 2 [\s\S]*continuing behind revision 2 [\s\S]*stopped at revision 3\n$/,
  );
  assert.match(printed("backup verify"), /^revisions 2 to 3: good; \d hashes compared\n$/m);
  assert.match(
    printed("snapshot restore"),
    /Restored today\.db into r3: revision 2, [\s\S]*Restored backup into old: revision 2, /,
  );
  assert.match(
    printed("compaction --physical"),
    /compacted revision 3\n0\n(Finished defragmenting etcd member\[.*\n){3}$/,
  );
  const hashes = [...printed("hashkv").matchAll(/2379 │ +(\d+) │ +3 │/g)].map((match) => match[1]);
  assert.deepEqual([hashes.length, new Set(hashes).size], [3, 1]);
});
