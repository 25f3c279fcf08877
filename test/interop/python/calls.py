"""The client "etcd3" for Python at work: each part prints a line when it has seen what it should, the first that has not ends the program.

    calls.py HOST:PORT
"""
import sys
import threading
import time

import etcd3
import grpc

host, port = sys.argv[1].rsplit(":", 1)
client = etcd3.client(host=host, port=int(port), timeout=20)
other = etcd3.client(host=host, port=int(port), timeout=20)


def same(actual, expected):
    if actual != expected:
        raise AssertionError("%r, and should be %r" % (actual, expected))


def part(name):
    print(name, flush=True)


# Keys and transactions.
client.put("py/a", "1")
client.put("py/b", "2")
same([(kv.key, value) for value, kv in client.get_prefix("py/", sort_order="descend")], [(b"py/b", b"2"), (b"py/a", b"1")])
same(client.replace("py/a", "1", "one"), True)
same(client.replace("py/a", "1", "two"), False)
same((client.delete("py/b"), client.delete("py/b")), (True, False))
part("keys")

# A watch: now, from the past, a prefix, what was before, cancelled.
events, cancel = client.watch_prefix("w/", prev_kv=True)
other.put("w/1", "x")
other.put("w/1", "y")
other.delete("w/1")
seen = [next(events) for _ in range(3)]
same([(type(event).__name__, event.key, event.value, event.prev_value) for event in seen[:2]],
     [("PutEvent", b"w/1", b"x", b""), ("PutEvent", b"w/1", b"y", b"x")])
same((type(seen[2]).__name__, seen[2].key, seen[2].prev_value), ("DeleteEvent", b"w/1", b"y"))
past, cancel_past = client.watch("w/1", start_revision=seen[1].mod_revision)
same([next(past).mod_revision for _ in range(2)], [event.mod_revision for event in seen[1:]])
cancel_past()
cancel()
same(list(events), [])
other.compact(seen[2].mod_revision)
try:
    gone, _ = client.watch("w/1", start_revision=seen[0].mod_revision)
    next(gone)
    raise AssertionError("a watch from a compacted revision must fail")
except etcd3.exceptions.RevisionCompactedError as error:
    same(error.compacted_revision, seen[2].mod_revision)
part("watch")

# A lease: its keys, its time, renewed, revoked.
lease = client.lease(20)
client.put("leased", "here", lease=lease)
same(list(other.get_lease_info(lease.id).keys), [b"leased"])
same(lease.granted_ttl, 20)
same([one.TTL for one in lease.refresh()], [20])
gone, cancel = other.watch("leased")
lease.revoke()
same(type(next(gone)).__name__, "DeleteEvent")
cancel()
same([one.TTL for one in lease.refresh()], [0])
part("lease")

# A lock: it excludes, and is passed on. Debian's client stumbles over its own library of waits when a lock is taken; here it waits by a watch.
def tried(lock):
    try:
        return lock.acquire(timeout=0)
    except TypeError:
        return False


def wait_for(lock):
    while not tried(lock):
        try:
            lock.etcd_client.watch_once(lock.key, timeout=1)
        except etcd3.exceptions.WatchTimedOut:
            pass


first, second = client.lock("gate", ttl=20), other.lock("gate", ttl=20)
same(first.acquire(), True)
same(tried(second), False)
same((first.is_acquired(), second.is_acquired()), (True, False))
waiting = threading.Thread(target=wait_for, args=(second,), daemon=True)
waiting.start()
while client.get_lease_info(first.lease.id).TTL > 18:
    same(second.is_acquired(), False)
    time.sleep(0.2)
same([one.TTL for one in first.refresh()], [20])
same(first.release(), True)
waiting.join(20)
same((second.is_acquired(), first.is_acquired()), (True, False))
second.lease.revoke()
same(second.is_acquired(), False)
part("lock")


# This client has no calls for the Lock and Election services: here they are on its channel, by hand.
def field(number, value):
    if isinstance(value, int):
        data = bytearray([number << 3])
        while value >= 128:
            data.append(value & 127 | 128)
            value >>= 7
        return bytes(data + bytearray([value]))
    return bytes([number << 3 | 2, len(value)]) + value


def call(path, request):
    return client.channel.unary_unary(path, lambda data: data, lambda data: data)(request, timeout=20)


lease = client.lease(20)
held = call("/v3lockpb.Lock/Lock", field(1, b"service") + field(2, lease.id))
key = b"service/%x" % lease.id
same(key in held, True)
same(client.get(key)[1].lease_id, lease.id)
call("/v3lockpb.Lock/Unlock", field(1, key))
same(client.get(key), (None, None))
won = call("/v3electionpb.Election/Campaign", field(1, b"post") + field(2, lease.id) + field(3, b"ann"))
same(client.get(b"post/%x" % lease.id)[0], b"ann")
same(b"ann" in call("/v3electionpb.Election/Leader", field(1, b"post")), True)
lease.revoke()
try:
    call("/v3electionpb.Election/Leader", field(1, b"post"))
    raise AssertionError("a leader was found where there is none")
except grpc.RpcError as error:
    same((error.code(), error.details()), (grpc.StatusCode.UNKNOWN, "election: no leader"))
part("lock and election services")
