// Command clients runs programs of client-go and controller-runtime with the API server of a
// kubeconfig, and prints a line for each check.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	corev1 "k8s.io/api/core/v1"
)

// world is what checks work with.
type world struct {
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	objects   int
}

type check struct {
	name string
	run  func(context.Context, *world) (string, error)
}

var checks = []check{
	{"informer", checkInformer},
	{"protobuf", checkProtobuf},
	{"pager", checkPager},
	{"apply", checkApply},
	{"retry-on-conflict", checkRetryOnConflict},
	{"dynamic", checkDynamic},
	{"leader-election", checkLeaderElection},
	{"workqueue", checkWorkqueue},
	{"controller-runtime", checkControllerRuntime},
	{"envtest", checkEnvtest},
}

const checkLimit = 10 * time.Minute

func main() {
	// controller-runtime has flags of its own in the common set.
	flags := flag.NewFlagSet("clients", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "of the API server")
	only := flags.String("checks", "", "names, separated by commas; all but envtest if empty")
	objects := flags.Int("objects", 200, "objects of the workqueue check")
	_ = flags.Parse(os.Args[1:])
	w, err := newWorld(*kubeconfig, *objects)
	if err != nil {
		fmt.Println("FAILED world:", err)
		os.Exit(1)
	}
	failed := 0
	for _, c := range checks {
		if !wanted(*only, c.name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
		began := time.Now()
		detail, err := c.run(ctx, w)
		cancel()
		if err != nil {
			failed++
			fmt.Printf("FAILED %s: %v\n", c.name, err)
			continue
		}
		fmt.Printf("ok %s: %s (%d ms)\n", c.name, detail, time.Since(began).Milliseconds())
	}
	if failed > 0 {
		os.Exit(1)
	}
}

func wanted(only, name string) bool {
	if only == "" {
		return name != "envtest"
	}
	for _, each := range strings.Split(only, ",") {
		if each == name {
			return true
		}
	}
	return false
}

func newWorld(kubeconfig string, objects int) (*world, error) {
	w := &world{namespace: "go-clients", objects: objects}
	if kubeconfig == "" {
		return w, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 5000, 5000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	w.config, w.client = config, client
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	_, err = client.CoreV1().Namespaces().Create(context.Background(), namespace, metav1.CreateOptions{})
	return w, err
}

// eventually waits until the condition holds.
func eventually(ctx context.Context, what string, holds func() bool) error {
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in time: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"test": "yes"}},
		Data:       map[string]string{"key": name},
	}
}
