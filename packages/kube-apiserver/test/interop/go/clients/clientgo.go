package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
)

// counter counts the lists and watches that a client makes.
type counter struct {
	next           http.RoundTripper
	lists, watches atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps") {
		if r.URL.Query().Get("watch") != "" {
			c.watches.Add(1)
		} else {
			c.lists.Add(1)
		}
	}
	return c.next.RoundTrip(r)
}

// counted is a client that counts.
func counted(w *world) (kubernetes.Interface, *counter, error) {
	c := &counter{}
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		c.next = next
		return c
	})
	client, err := kubernetes.NewForConfig(config)
	return client, c, err
}

func testInformers(client kubernetes.Interface, namespace string) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "test=yes" }))
}

func checkInformer(ctx context.Context, w *world) (string, error) {
	client, count, err := counted(w)
	if err != nil {
		return "", err
	}
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	for i := range 20 {
		if _, err := maps.Create(ctx, configMap(w.namespace, fmt.Sprintf("i%d", i)), metav1.CreateOptions{}); err != nil {
			return "", err
		}
	}
	var added, updated, deleted atomic.Int64
	factory := testInformers(client, w.namespace)
	informer := factory.Core().V1().ConfigMaps().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { added.Add(1) },
		UpdateFunc: func(any, any) { updated.Add(1) },
		DeleteFunc: func(any) { deleted.Add(1) },
	}); err != nil {
		return "", err
	}
	inner, cancel := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(inner.Done())
	factory.WaitForCacheSync(inner.Done())
	for i := range 20 {
		name := fmt.Sprintf("i%d", i)
		object := configMap(w.namespace, name)
		object.Data["key"] = "changed"
		if _, err := maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
		if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return "", err
		}
	}
	err = eventually(ctx, "20 of each event", func() bool {
		return added.Load() == 20 && updated.Load() == 20 && deleted.Load() == 20
	})
	if err != nil {
		return "", fmt.Errorf("%w: %d added, %d updated, %d deleted", err, added.Load(), updated.Load(), deleted.Load())
	}
	if len(informer.GetStore().List()) != 0 {
		return "", fmt.Errorf("the store is not empty")
	}
	if count.lists.Load() > 1 || count.watches.Load() != 1 {
		return "", fmt.Errorf("%d lists, %d watches", count.lists.Load(), count.watches.Load())
	}
	return fmt.Sprintf("60 events, %d lists, %d watch", count.lists.Load(), count.watches.Load()), nil
}

func checkProtobuf(ctx context.Context, w *world) (string, error) {
	config := rest.CopyConfig(w.config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	maps := client.CoreV1().ConfigMaps(w.namespace)
	watch, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=pb"})
	if err != nil {
		return "", err
	}
	defer watch.Stop()
	created, err := maps.Create(ctx, configMap(w.namespace, "pb"), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	event := <-watch.ResultChan()
	seen, ok := event.Object.(*corev1.ConfigMap)
	if !ok || seen.UID != created.UID || seen.Data["key"] != "pb" {
		return "", fmt.Errorf("unexpected event %v %v", event.Type, event.Object)
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "test=yes"})
	if err != nil || len(list.Items) != 1 || len(list.Items[0].ManagedFields) != 1 {
		return "", fmt.Errorf("list: %v, %v", list, err)
	}
	return "create, watch and list", maps.Delete(ctx, "pb", metav1.DeleteOptions{})
}

func checkPager(ctx context.Context, w *world) (string, error) {
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	for i := range 25 {
		if _, err := maps.Create(ctx, configMap(w.namespace, fmt.Sprintf("p%d", i)), metav1.CreateOptions{}); err != nil {
			return "", err
		}
	}
	pages := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, o)
	}))
	pages.PageSize = 10
	seen := 0
	err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: "test=yes"}, func(runtime.Object) error {
		seen++
		return nil
	})
	if err != nil || seen != 25 {
		return "", fmt.Errorf("%d of 25, %v", seen, err)
	}
	selected := metav1.ListOptions{LabelSelector: "test=yes"}
	return "25 objects in pages of 10, deleted as a collection", maps.DeleteCollection(ctx, metav1.DeleteOptions{}, selected)
}

func checkApply(ctx context.Context, w *world) (string, error) {
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	one := metav1.ApplyOptions{FieldManager: "one"}
	two := metav1.ApplyOptions{FieldManager: "two"}
	first := applycorev1.ConfigMap("applied", w.namespace).WithData(map[string]string{"a": "1", "b": "1"})
	if _, err := maps.Apply(ctx, first, one); err != nil {
		return "", err
	}
	second := applycorev1.ConfigMap("applied", w.namespace).WithData(map[string]string{"a": "2"})
	_, err := maps.Apply(ctx, second, two)
	if !errors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "one": .data.a`) {
		return "", fmt.Errorf("no conflict: %v", err)
	}
	two.Force = true
	if _, err := maps.Apply(ctx, second, two); err != nil {
		return "", err
	}
	less := applycorev1.ConfigMap("applied", w.namespace).WithData(map[string]string{})
	after, err := maps.Apply(ctx, less, one)
	if err != nil || len(after.Data) != 1 || after.Data["a"] != "2" {
		return "", fmt.Errorf("data %v, %v", after, err)
	}
	extracted, err := applycorev1.ExtractConfigMap(after, "two")
	if err != nil || extracted.Data["a"] != "2" {
		return "", fmt.Errorf("extracted %v, %v", extracted, err)
	}
	return "conflict, force, removal, extraction", maps.Delete(ctx, "applied", metav1.DeleteOptions{})
}

func checkRetryOnConflict(ctx context.Context, w *world) (string, error) {
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	if _, err := maps.Create(ctx, configMap(w.namespace, "counter"), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	var conflicts atomic.Int64
	var wait sync.WaitGroup
	failures := make(chan error, 8)
	for range 8 {
		wait.Go(func() {
			for range 5 {
				backoff := retry.DefaultRetry
				backoff.Steps = 100
				failure := retry.RetryOnConflict(backoff, func() error {
					object, err := maps.Get(ctx, "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					object.Data["count"] += "x"
					if _, err = maps.Update(ctx, object, metav1.UpdateOptions{}); errors.IsConflict(err) {
						conflicts.Add(1)
					}
					return err
				})
				if failure != nil {
					failures <- failure
					return
				}
			}
		})
	}
	wait.Wait()
	if len(failures) > 0 {
		return "", <-failures
	}
	object, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	if err != nil || len(object.Data["count"]) != 40 {
		return "", fmt.Errorf("%d of 40 updates, %v", len(object.Data["count"]), err)
	}
	return fmt.Sprintf("40 updates, %d conflicts", conflicts.Load()), maps.Delete(ctx, "counter", metav1.DeleteOptions{})
}

func checkDynamic(ctx context.Context, w *world) (string, error) {
	client, err := dynamic.NewForConfig(w.config)
	if err != nil {
		return "", err
	}
	resources, err := w.client.Discovery().ServerPreferredResources()
	if err != nil {
		return "", err
	}
	leases := client.Resource(schema.GroupVersionResource{
		Group: "coordination.k8s.io", Version: "v1", Resource: "leases",
	}).Namespace(w.namespace)
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"generateName": "l-"},
		"spec":     map[string]any{"holderIdentity": "me"},
	}}
	created, err := leases.Create(ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d groups discovered, %s created", len(resources), strings.Split(created.GetName(), "-")[0]),
		leases.Delete(ctx, created.GetName(), metav1.DeleteOptions{})
}

func checkLeaderElection(ctx context.Context, w *world) (string, error) {
	leads := make(chan string, 10)
	elect := func(ctx context.Context, id string) (*leaderelection.LeaderElector, error) {
		return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "election", Namespace: w.namespace},
				Client:     w.client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: id},
			},
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- id },
				OnStoppedLeading: func() {},
			},
		})
	}
	order := []string{}
	stops := map[string]context.CancelFunc{}
	for _, id := range []string{"a", "b", "c"} {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		stops[id] = cancel
		elector, err := elect(inner, id)
		if err != nil {
			return "", err
		}
		go elector.Run(inner)
	}
	for range 3 {
		select {
		case id := <-leads:
			order = append(order, id)
			stops[id]()
		case <-ctx.Done():
			return "", fmt.Errorf("leaders so far: %v", order)
		}
	}
	return fmt.Sprintf("%d leaders, one after the other", len(order)), nil
}

// checkWorkqueue creates many objects, and reconciles each of them by an informer and a queue.
func checkWorkqueue(ctx context.Context, w *world) (string, error) {
	client, count, err := counted(w)
	if err != nil {
		return "", err
	}
	began := time.Now()
	if err := inParallel(ctx, w.objects, func(i int) error {
		_, err := w.client.CoreV1().ConfigMaps(w.namespace).
			Create(ctx, configMap(w.namespace, fmt.Sprintf("w%d", i)), metav1.CreateOptions{})
		return err
	}); err != nil {
		return "", err
	}
	created := time.Since(began)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	factory := testInformers(client, w.namespace)
	informer := factory.Core().V1().ConfigMaps()
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) },
	}); err != nil {
		return "", err
	}
	inner, cancel := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(inner.Done())
	factory.WaitForCacheSync(inner.Done())
	synced := time.Since(began) - created
	var reconciled, failures atomic.Int64
	reconcile := func(key string) error {
		_, name, err := cache.SplitMetaNamespaceKey(key)
		if err != nil {
			return err
		}
		object, err := informer.Lister().ConfigMaps(w.namespace).Get(name)
		if err != nil || object.Annotations["reconciled"] == "yes" {
			return err
		}
		patch := []byte(`{"metadata":{"annotations":{"reconciled":"yes"}}}`)
		_, err = w.client.CoreV1().ConfigMaps(w.namespace).
			Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{})
		if err == nil {
			reconciled.Add(1)
		}
		return err
	}
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				if err := reconcile(key); err != nil {
					failures.Add(1)
					queue.AddRateLimited(key)
				} else {
					queue.Forget(key)
				}
				queue.Done(key)
			}
		})
	}
	err = eventually(ctx, "all reconciled", func() bool {
		return reconciled.Load() >= int64(w.objects) && queue.Len() == 0
	})
	queue.ShutDown()
	workers.Wait()
	if err != nil {
		return "", fmt.Errorf("%w: %d of %d, %d failures", err, reconciled.Load(), w.objects, failures.Load())
	}
	total := time.Since(began)
	if reconciled.Load() != int64(w.objects) || failures.Load() > 0 || count.watches.Load() != 1 {
		return "", fmt.Errorf("%d reconciled, %d failures, %d watches", reconciled.Load(), failures.Load(), count.watches.Load())
	}
	if err := inParallel(ctx, w.objects, func(i int) error {
		return w.client.CoreV1().ConfigMaps(w.namespace).
			Delete(ctx, fmt.Sprintf("w%d", i), metav1.DeleteOptions{})
	}); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d objects: created in %.1f s, synced in %.1f s, reconciled in %.1f s; %d lists, %d watch",
		w.objects, created.Seconds(), synced.Seconds(), (total - created - synced).Seconds(),
		count.lists.Load(), count.watches.Load()), nil
}

// inParallel calls do for each number below count, by 32 workers.
func inParallel(ctx context.Context, count int, do func(int) error) error {
	numbers := make(chan int)
	failures := make(chan error, 32)
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	var failure error
send:
	for i := range count {
		select {
		case numbers <- i:
		case failure = <-failures:
			break send
		case <-ctx.Done():
			failure = ctx.Err()
			break send
		}
	}
	close(numbers)
	workers.Wait()
	if failure == nil && len(failures) > 0 {
		failure = <-failures
	}
	return failure
}
