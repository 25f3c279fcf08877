package quorateenv

import (
	"crypto/tls"
	"net/http"
	"os"
	"testing"
)

func TestStart(t *testing.T) {
	kube := Start(t)
	if _, err := os.Stat(kube.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Get(kube.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
}
