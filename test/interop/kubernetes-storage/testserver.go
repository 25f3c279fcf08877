// Package testserver stands in for k8s.io/apiserver/pkg/storage/etcd3/testserver, by go's -overlay:
// Kubernetes' own tests of its storage then run on a member of the program that
// QUORATE_TEST_MEMBER names, in place of an embedded etcd.
//
// The functions have the names and types that those tests call.
package testserver

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

const startTimeout = 60 * time.Second

// NewTestConfig returns the part of embed.Config that the tests change and RunEtcd understands.
func NewTestConfig(t testing.TB) *embed.Config {
	config := embed.NewConfig()
	config.Dir = t.TempDir()
	client, peer := freeURL(t), freeURL(t)
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	return config
}

func freeURL(t testing.TB) url.URL {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return url.URL{Scheme: "http", Host: listener.Addr().String()}
}

// RunEtcd starts a member, which ends with the test, and returns a client of it.
func RunEtcd(t testing.TB, config *embed.Config) *kubernetes.Client {
	t.Helper()
	if config == nil {
		config = NewTestConfig(t)
	}
	start(t, config)
	tlsConfig, err := config.ClientTLSInfo.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.ClientTLSInfo.Empty() {
		tlsConfig = nil
	}
	endpoint := config.AdvertiseClientUrls[0]
	awaitReady(t, endpoint, tlsConfig)
	client, err := kubernetes.New(clientv3.Config{
		TLS:         tlsConfig,
		Endpoints:   []string{endpoint.String()},
		DialTimeout: 10 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithBlock()},
	})
	if err != nil {
		t.Fatal(err)
	}
	client.KV = storagetesting.NewKVRecorder(client.KV)
	client.Kubernetes = storagetesting.NewKubernetesRecorder(client.Kubernetes)
	return client
}

func start(t testing.TB, config *embed.Config) {
	client, peer := config.ListenClientUrls[0].String(), config.ListenPeerUrls[0].String()
	args := []string{
		"--name=member", "--data-dir=" + filepath.Join(config.Dir, "member"), "--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=member=" + peer,
		fmt.Sprintf("--max-request-bytes=%d", config.MaxRequestBytes),
		"--watch-progress-notify-interval=" + config.WatchProgressNotifyInterval.String(),
	}
	if info := config.ClientTLSInfo; !info.Empty() {
		args = append(args, "--cert-file="+info.CertFile, "--key-file="+info.KeyFile,
			"--trusted-ca-file="+info.TrustedCAFile)
	}
	member := exec.Command(os.Getenv("QUORATE_TEST_MEMBER"), args...)
	log, err := os.Create(filepath.Join(config.Dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	member.Stdout, member.Stderr = log, log
	if err := member.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		member.Process.Kill()
		member.Wait()
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("log of the member:\n%s", text)
		}
	})
}

func awaitReady(t testing.TB, endpoint url.URL, config *tls.Config) {
	http := http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: config, DisableKeepAlives: true,
	}}
	address := endpoint.String() + "/health"
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		response, err := http.Get(address)
		if err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == 200 {
			return
		}
	}
	t.Fatalf("the member is not ready after %s", startTimeout)
}
