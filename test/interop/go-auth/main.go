// Command go-auth is a user of Go's clientv3: it logs in, renews its token whenever a member does
// not accept it any more, and sees what its roles do not permit. The test at its standard input
// and output (go-auth.test.ts) changes passwords, restarts the member and revokes permissions:
// the program prints "do NAME" and waits for a line.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const patience = 60 * time.Second

var input = bufio.NewScanner(os.Stdin)

func must(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
	fmt.Println("ok", what)
}

// expect ends the program if err is not the error that Go's library has under that name.
func expect(what string, err, wanted error) {
	var known rpctypes.EtcdError
	if !errors.As(rpctypes.Error(err), &known) || !errors.Is(known, wanted) {
		must(what, fmt.Errorf("expected %v, got %v", wanted, err))
	}
	fmt.Println("ok", what)
}

func ask(name string) {
	fmt.Println("do", name)
	if !input.Scan() {
		os.Exit(1)
	}
}

func open(endpoint, user, password string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{endpoint},
		DialTimeout: patience,
		Username:    user,
		Password:    password,
	})
}

func main() {
	endpoint, password := os.Args[1], os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	client, err := open(endpoint, "ann", password)
	must("log in", err)
	defer client.Close()
	put := func(key string) error {
		_, err := client.Put(ctx, key, "v")
		return err
	}
	must("put", put("app/go"))
	expect("a put that no role permits", put("other"), rpctypes.ErrPermissionDenied)
	_, err = client.Get(ctx, "", clientv3.WithPrefix())
	expect("a range that is wider than the role", err, rpctypes.ErrPermissionDenied)
	_, err = client.Txn(ctx).Then(clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpGet("other")}, nil)).Commit()
	expect("a transaction in a transaction", err, rpctypes.ErrPermissionDenied)
	_, err = client.UserList(ctx)
	expect("a list of users", err, rpctypes.ErrPermissionDenied)
	_, err = open(endpoint, "ann", "wrong")
	expect("a wrong password", err, rpctypes.ErrAuthFailed)

	ask("passwd")
	must("put after a new password ended the token", put("app/go"))
	ask("expire")
	must("put after the token ended", put("app/go"))
	ask("restart")
	must("put after the member was started again", put("app/go"))

	session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
	must("a session", err)
	must("a lock", concurrency.NewMutex(session, "app/lock").Lock(ctx))
	denied := concurrency.NewMutex(session, "other/lock").Lock(ctx)
	expect("a lock that no role permits", denied, rpctypes.ErrPermissionDenied)

	watch := client.Watch(ctx, "app/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	created := <-watch
	must("a watch", created.Err())
	must("a put that is watched", put("app/go"))
	for response := range watch {
		must("an event", response.Err())
		if len(response.Events) > 0 {
			break
		}
	}
	ask("revoke")
	// The library closes the channel of a watch that a member has ended, without its reason.
	for range watch {
	}
	fmt.Println("the watch ended")
	refused := <-client.Watch(ctx, "app/", clientv3.WithPrefix())
	// Its error is a text, which no constant of the library equals.
	if err := refused.Err(); err == nil || !strings.Contains(err.Error(), "permission denied") {
		must("a watch after the role was revoked", fmt.Errorf("it was not refused: %v", err))
	}
	expect("a put after the role was revoked", put("app/go"), rpctypes.ErrPermissionDenied)
}
