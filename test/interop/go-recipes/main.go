// Command go-recipes is the other end of locks, queues and barriers: etcd's recipes and its package
// concurrency for Go. It reads one command a line, runs it, and prints "done" with the line and, for
// a value that it took from a queue, the value. Commands that end with "&" run beside the next ones.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{os.Args[1]},
		DialTimeout: 60 * time.Second,
	})
	must(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
	must(err)
	ctx := context.Background()
	rwLock := recipe.NewRWMutex(session, "interop-rw")
	mutex := concurrency.NewMutex(session, "interop-mutex")
	barrier := recipe.NewBarrier(client, "interop-barrier")
	queue := recipe.NewQueue(client, "interop-queue")
	run := func(line string) {
		words := strings.Fields(line)
		value := ""
		switch words[0] {
		case "rlock":
			must(rwLock.RLock())
		case "runlock":
			must(rwLock.RUnlock())
		case "wlock":
			must(rwLock.Lock())
		case "wunlock":
			must(rwLock.Unlock())
		case "lock":
			must(mutex.Lock(ctx))
		case "unlock":
			must(mutex.Unlock(ctx))
		case "hold":
			must(barrier.Hold())
		case "release":
			must(barrier.Release())
		case "wait":
			must(barrier.Wait())
		case "enqueue":
			must(queue.Enqueue(words[1]))
		case "dequeue":
			value, err = queue.Dequeue()
			must(err)
		default:
			must(fmt.Errorf("unknown command %q", line))
		}
		fmt.Println(strings.TrimSpace("done " + words[0] + " " + value))
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		line, isAside := strings.CutSuffix(input.Text(), " &")
		if isAside {
			go run(line)
		} else {
			run(line)
		}
	}
	must(session.Close())
}
