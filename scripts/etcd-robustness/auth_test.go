package robustness

// Compiled into etcd's robustness tests by scripts/etcd-robustness.sh --auth: the scenarios run with
// users and roles, which change meanwhile, and guests try what they may not do.

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	authPause       = 500 * time.Millisecond
	authCallTimeout = 5 * time.Second
	// Keys that are in no history: the judges know nothing of them.
	guestKey = "quorate-guest"
)

// authTraffic changes users and roles until it is stopped, and counts.
type authTraffic struct {
	t         *testing.T
	endpoints []string
	root      *clientv3.Client
	changes   atomic.Int64
	refused   atomic.Int64
	served    atomic.Int64
	finished  chan struct{}
	stop      context.CancelFunc
}

func authClient(endpoints []string, user, password string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:   endpoints,
		Logger:      zap.NewNop(),
		DialTimeout: authCallTimeout,
		Username:    user,
		Password:    password,
	})
}

// startAuth makes the users that the tests' clients are, enables auth, and begins to change others.
func startAuth(ctx context.Context, t *testing.T, endpoints []string) *authTraffic {
	t.Helper()
	plain, err := authClient(endpoints, "", "")
	must(t, err)
	defer plain.Close()
	for _, user := range []string{"root", "traffic"} {
		_, err = plain.RoleAdd(ctx, user)
		must(t, err)
		_, err = plain.UserAdd(ctx, user, user)
		must(t, err)
		_, err = plain.UserGrantRole(ctx, user, user)
		must(t, err)
	}
	all := clientv3.PermissionType(clientv3.PermReadWrite)
	_, err = plain.RoleGrantPermission(ctx, "traffic", "\x00", "\x00", all)
	must(t, err)
	_, err = plain.AuthEnable(ctx)
	must(t, err)
	root, err := authClient(endpoints, "root", "root")
	must(t, err)
	running, stop := context.WithCancel(ctx)
	a := &authTraffic{t: t, endpoints: endpoints, root: root, finished: make(chan struct{}), stop: stop}
	go a.run(running)
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("auth: %v", err)
	}
}

// end stops the changes, and fails the test where nothing was changed or refused.
func (a *authTraffic) end(lg *zap.Logger) {
	a.stop()
	<-a.finished
	a.root.Close()
	changes, refused, served := a.changes.Load(), a.refused.Load(), a.served.Load()
	lg.Info("Reporting complete auth", zap.Int64("changes", changes), zap.Int64("refused", refused), zap.Int64("served", served))
	if changes == 0 || refused == 0 || served == 0 {
		a.t.Errorf("auth: %d changes, %d calls refused and %d served are too few to say anything", changes, refused, served)
	}
}

func (a *authTraffic) run(ctx context.Context) {
	defer close(a.finished)
	for i := 0; ctx.Err() == nil; i++ {
		a.guest(ctx, fmt.Sprintf("guest-%d", i))
		select {
		case <-ctx.Done():
		case <-time.After(authPause):
		}
	}
}

// change makes a change; true if it was acknowledged. One that fails while members are down may
// have been made.
func (a *authTraffic) change(ctx context.Context, make func(ctx context.Context) error) bool {
	limited, cancel := context.WithTimeout(ctx, authCallTimeout)
	defer cancel()
	if make(limited) != nil {
		return false
	}
	a.changes.Add(1)
	return true
}

// guest is a user that may read one key for a while.
func (a *authTraffic) guest(ctx context.Context, name string) {
	root := a.root
	made := a.change(ctx, func(ctx context.Context) error { _, err := root.UserAdd(ctx, name, "first"); return err }) &&
		a.change(ctx, func(ctx context.Context) error { _, err := root.RoleAdd(ctx, name); return err }) &&
		a.change(ctx, func(ctx context.Context) error { _, err := root.UserGrantRole(ctx, name, name); return err })
	if !made {
		return
	}
	guest, err := authClient(a.endpoints, name, "first")
	if err != nil {
		return
	}
	defer guest.Close()
	a.expectRefusal(ctx, guest, "before a permission was granted")
	read := clientv3.PermissionType(clientv3.PermRead)
	if !a.change(ctx, func(ctx context.Context) error {
		_, err := root.RoleGrantPermission(ctx, name, guestKey, "", read)
		return err
	}) {
		return
	}
	a.expectService(ctx, guest)
	if a.change(ctx, func(ctx context.Context) error {
		_, err := root.RoleRevokePermission(ctx, name, guestKey, "")
		return err
	}) {
		a.expectRefusal(ctx, guest, "after its permission was revoked")
	}
	if a.change(ctx, func(ctx context.Context) error { _, err := root.UserChangePassword(ctx, name, "second"); return err }) {
		if again, err := authClient(a.endpoints, name, "first"); err == nil {
			again.Close()
			a.t.Errorf("auth: %s logs in with a password that was changed", name)
		}
	}
	if a.change(ctx, func(ctx context.Context) error { _, err := root.UserDelete(ctx, name); return err }) {
		a.expectRefusal(ctx, guest, "after it was deleted")
	}
	a.change(ctx, func(ctx context.Context) error { _, err := root.RoleDelete(ctx, name); return err })
}

func (a *authTraffic) get(ctx context.Context, guest *clientv3.Client) error {
	limited, cancel := context.WithTimeout(ctx, authCallTimeout)
	defer cancel()
	_, err := guest.Get(limited, guestKey)
	return err
}

// expectRefusal reports a linearizable read that is served; any error will do.
func (a *authTraffic) expectRefusal(ctx context.Context, guest *clientv3.Client, when string) {
	err := a.get(ctx, guest)
	if err == nil {
		a.t.Errorf("auth: %s is read %s", guestKey, when)
		return
	}
	for _, wanted := range []error{rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthFailed} {
		if errors.Is(err, wanted) {
			a.refused.Add(1)
		}
	}
}

// expectService reports a read that is refused although it is permitted.
func (a *authTraffic) expectService(ctx context.Context, guest *clientv3.Client) {
	err := a.get(ctx, guest)
	if err == nil {
		a.served.Add(1)
	}
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		a.t.Errorf("auth: a permitted read is refused: %v", err)
	}
}
