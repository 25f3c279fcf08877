"""The client "etcd3" for Python follows a prefix over the deaths of members, as its users write it: at an error it goes on at the next
member, from behind the last revision that it has seen. Prints "watching" once, then each value; ends after "end".

    follow.py PREFIX HOST:PORT...
"""
import sys

import etcd3

prefix, members = sys.argv[1], sys.argv[2:]
revision = None
at = 0
announced = False
ended = False
while not ended:
    host, port = members[at % len(members)].rsplit(":", 1)
    at += 1
    client = etcd3.client(host=host, port=int(port), timeout=5)
    try:
        if revision is None:
            revision = client.get_response(prefix).header.revision + 1
        responses, _ = client.watch_prefix_response(prefix, start_revision=revision)
        if not announced:
            print("watching", flush=True)
            announced = True
        for response in responses:
            for event in response.events:
                print(event.value.decode(), flush=True)
                revision = event.mod_revision + 1
                ended = ended or event.value == b"end"
            if ended:
                break
    except Exception as error:  # whatever a dying member makes of a call
        print("%s at %s: %s" % (type(error).__name__, members[(at - 1) % len(members)], error), file=sys.stderr, flush=True)
    client.close()
