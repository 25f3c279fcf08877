/** Failed logins are forgiven with time, and those that came before count with what is left. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LoginLimits, USER_FAILURES } from "../src/identity/login-limits.ts";

test("a user who fails no faster than failures are forgiven is never refused; a faster one is, and may again later", () => {
  const { burst, refillMs } = USER_FAILURES;
  const slow = new LoginLimits();
  for (let i = 0; i < 3 * burst; i++) {
    assert.equal(slow.mayTry("ann", "127.0.0.1", i * refillMs), true, `try ${i}`);
    slow.failed("ann", "127.0.0.1", i * refillMs);
  }
  const fast = new LoginLimits();
  let nowMs = 0;
  for (let i = 0; i < burst; i++) {
    assert.equal(fast.mayTry("ann", "127.0.0.1", nowMs), true, `try ${i}`);
    fast.failed("ann", "127.0.0.1", nowMs);
  }
  for (let i = 0; i < 3; i++) {
    assert.equal(fast.mayTry("ann", "127.0.0.1", nowMs), false);
    nowMs += refillMs;
    assert.equal(fast.mayTry("ann", "127.0.0.1", nowMs - 1), false);
    assert.equal(fast.mayTry("ann", "127.0.0.1", nowMs), true);
    fast.failed("ann", "127.0.0.1", nowMs);
  }
});
