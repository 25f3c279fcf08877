"""Logs in, is refused what its user may not do, and logs in again with another password.

Arguments: port, and files of the authority, the certificate and its key.
"""
import sys

import etcd3
import grpc

PORT, CA, CERT, KEY = sys.argv[1:5]


def client(password):
    return etcd3.client(
        host="localhost",
        port=int(PORT),
        ca_cert=CA,
        cert_cert=CERT,
        cert_key=KEY,
        user="ann",
        password=password,
        timeout=20,
    )


def code_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code().name
    except etcd3.exceptions.Etcd3Exception as error:
        return type(error).__name__
    return "OK"


ann = client("secret")
ann.put("app/python", "1")
assert ann.get("app/python")[0] == b"1"
print("denied", code_of(lambda: ann.put("other", "1")), flush=True)
print("wrong", code_of(lambda: client("x")), flush=True)
sys.stdin.readline()
print("renewed", client("other").get("app/python")[0].decode(), flush=True)
