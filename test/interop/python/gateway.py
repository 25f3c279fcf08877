"""The client "etcd3gw" for Python at work, which speaks the JSON gateway: each part prints a line when it has seen what it should, the first that has not ends the program.

    gateway.py HOST:PORT
"""
import sys
import threading

from etcd3gw.client import Etcd3Client
from etcd3gw.utils import _encode

host, port = sys.argv[1].rsplit(":", 1)
client = Etcd3Client(host=host, port=int(port), timeout=20)
other = Etcd3Client(host=host, port=int(port), timeout=20)


def same(actual, expected):
    if actual != expected:
        raise AssertionError("%r, and should be %r" % (actual, expected))


def part(name):
    print(name, flush=True)


# The cluster.
same(client.api_path, "/v3/")
same(len(client.members()), 3)
same("leader" in client.status(), True)
part("cluster")

# Keys.
same(client.put("gw/a", "1"), True)
same(client.put("gw/b", b"\x00\xff"), True)
same(client.get("gw/a"), [b"1"])
same(client.get("gw/absent"), [])
same(client.get("gw/b"), [b"\x00\xff"])
same([kv["key"] for _, kv in client.get_prefix("gw/", sort_order="descend", sort_target="key")], [b"gw/b", b"gw/a"])
same(client.create("gw/a", "2"), False)
same(client.create("gw/c", "3"), True)
same(client.replace("gw/a", "1", "one"), True)
same(client.replace("gw/a", "1", "two"), False)
same((client.delete("gw/c"), client.delete("gw/c")), (True, False))
same(client.delete_prefix("gw/"), True)
same([kv for kv in client.get_all() if kv[1]["key"].startswith(b"gw/")], [])
part("keys")

# A transaction of both branches.
client.put("tx", "old")
transaction = {
    "compare": [{"key": _encode("tx"), "result": "EQUAL", "target": "VALUE", "value": _encode("old")}],
    "success": [{"request_put": {"key": _encode("tx"), "value": _encode("new")}}],
    "failure": [{"request_range": {"key": _encode("tx")}}],
}
same(client.transaction(transaction)["succeeded"], True)
again = client.transaction(transaction)
same("succeeded" in again, False)
same(again["responses"][0]["response_range"]["kvs"][0]["value"], _encode("new"))
part("transactions")

# Leases.
lease = client.lease(ttl=60)
client.put("leased", "x", lease)
same(lease.keys(), [b"leased"])
same(0 < lease.ttl() <= 60, True)
same(lease.refresh(), 60)
same(lease.revoke(), True)
same(client.get("leased"), [])
part("leases")

# Locks.
with client.lock("gate", ttl=60) as first:
    same(first.is_acquired(), True)
    second = other.lock("gate", ttl=60)
    same(second.acquire(), False)
    same(first.refresh(), 60)
same(second.acquire(), True)
same(second.release(), True)
part("locks")

# A watch: from now on, from the past, of a prefix, and of many changes that follow each other closely:
# the client takes each piece of the answer for one message.
start = int(client.transaction({"success": [{"request_put": {"key": _encode("w/0"), "value": _encode("0")}}]})["header"]["revision"])
events, cancel = client.watch_prefix("w/", start_revision=start)
same(next(events)["kv"]["value"], b"0")


def write(name):
    writer = Etcd3Client(host=host, port=int(port), timeout=20)
    for i in range(100):
        writer.put("w/" + name, str(i))


writers = [threading.Thread(target=write, args=(name,)) for name in ("a", "b", "c")]
for writer in writers:
    writer.start()
seen = {b"w/a": [], b"w/b": [], b"w/c": []}
for _ in range(300):
    change = next(events)["kv"]
    seen[change["key"]].append(int(change["value"]))
for writer in writers:
    writer.join()
for key in seen:
    same(seen[key], list(range(100)))
other.delete("w/a")
same(next(events)["type"], "DELETE")
cancel()
threading.Timer(0.2, lambda: other.put("once", "x")).start()
same(client.watch_once("once", timeout=20)["kv"]["value"], b"x")
part("watches")
