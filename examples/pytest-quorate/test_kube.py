import os
import ssl
import urllib.request


def test_the_server_is_ready(kube):
    assert os.path.exists(kube.kubeconfig)
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(f"{kube.url}/readyz", context=context) as response:
        assert response.read() == b"ok"
