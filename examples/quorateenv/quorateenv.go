// Package quorateenv starts a Kubernetes API server with its store for a test:
//
//	kube := quorateenv.Start(t)
//	config, err := clientcmd.BuildConfigFromFlags("", kube.Kubeconfig)
//
// It needs the program quorate, on the PATH or named by QUORATE.
package quorateenv

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Server is an API server that runs until its test ends.
type Server struct {
	// URL is such as "https://127.0.0.1:41234".
	URL string
	// Kubeconfig is the path of a file, of a user in the group system:masters.
	Kubeconfig string
}

// Start starts a server with more flags, such as "--controllers=". It skips the test where there is
// no quorate, and fails it where the server does not start.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	program := os.Getenv("QUORATE")
	if program == "" {
		program = "quorate"
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("there is no %s on the PATH: npm install quorate, or set QUORATE", program)
	}
	args := append([]string{"apiserver", "--data-dir", t.TempDir(), "--secure-port", "0"}, flags...)
	command := exec.Command(program, args...)
	// A test that is killed leaves no server.
	command.Env = append(os.Environ(), fmt.Sprintf("QUORATE_PARENT_PID=%d", os.Getpid()))
	command.Stderr = &lines{t: t}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	server := &Server{}
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		line := scanner.Text()
		if strings.HasPrefix(line, "https://") {
			server.URL = line
		}
		if path, found := strings.CutPrefix(line, "export KUBECONFIG="); found {
			server.Kubeconfig = path
			return server
		}
	}
	t.Fatal("the API server has ended before it was ready")
	return nil
}

// lines are what the server says, in the log of the test.
type lines struct{ t testing.TB }

func (w *lines) Write(text []byte) (int, error) {
	if os.Getenv("QUORATE_LOG") != "" {
		fmt.Fprint(os.Stderr, string(text))
	}
	return len(text), nil
}
