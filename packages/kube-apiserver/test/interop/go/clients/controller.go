package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var jobKind = schema.GroupVersionKind{Group: "test.example.org", Version: "v1", Kind: "Job"}

const finalizer = "test.example.org/clean-up"

// jobs is the definition of the resource that the controller reconciles.
func jobs() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	properties := map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"text": {Type: "string"},
		}},
		"status": {Type: "object", XPreserveUnknownFields: &preserve},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "jobs.test.example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: jobKind.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "jobs", Singular: "job", Kind: jobKind.Kind, ListKind: "JobList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: jobKind.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties},
				},
			}},
		},
	}
}

func newJob(namespace, name string) *unstructured.Unstructured {
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(jobKind)
	job.SetNamespace(namespace)
	job.SetName(name)
	return job
}

// reconciler makes a ConfigMap for each job, and cleans up by a finalizer.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	job := newJob("", "")
	if err := r.Get(ctx, request.NamespacedName, job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !job.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(job, finalizer) {
			return ctrl.Result{}, r.Update(ctx, job)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(job, finalizer) {
		return ctrl.Result{}, r.Update(ctx, job)
	}
	text, _, _ := unstructured.NestedString(job.Object, "spec", "text")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: job.GetName(), Namespace: job.GetNamespace()}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, object, func() error {
		object.Data = map[string]string{"text": text}
		return controllerutil.SetControllerReference(job, object, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	if phase, _, _ := unstructured.NestedString(job.Object, "status", "phase"); phase == "done" {
		return ctrl.Result{}, nil
	}
	base := job.DeepCopy()
	if err := unstructured.SetNestedField(job.Object, "done", "status", "phase"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, job, client.MergeFrom(base))
}

// checkControllerRuntime runs a controller with envtest on the existing API server.
func checkControllerRuntime(ctx context.Context, w *world) (string, error) {
	existing := true
	environment := &envtest.Environment{UseExistingCluster: &existing, Config: w.config}
	return runController(ctx, environment, w.namespace)
}

// checkEnvtest lets envtest start etcd and the API server: KUBEBUILDER_ASSETS has the programs.
func checkEnvtest(ctx context.Context, _ *world) (string, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return "", fmt.Errorf("KUBEBUILDER_ASSETS is not set")
	}
	return runController(ctx, &envtest.Environment{}, "default")
}

func runController(ctx context.Context, environment *envtest.Environment, namespace string) (string, error) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	environment.CRDs = []*apiextensionsv1.CustomResourceDefinition{jobs()}
	config, err := environment.Start()
	if err != nil {
		return "", err
	}
	defer func() { _ = environment.Stop() }()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	writer, err := startManager(inner, config)
	if err != nil {
		return "", err
	}
	for i := range 10 {
		job := newJob(namespace, fmt.Sprintf("job%d", i))
		_ = unstructured.SetNestedField(job.Object, "hello", "spec", "text")
		if err := writer.Create(ctx, job); err != nil {
			return "", err
		}
	}
	return "10 objects: finalizer, owned object, status, deletion", judge(ctx, writer, namespace)
}

func startManager(ctx context.Context, config *rest.Config) (client.Client, error) {
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(manager).
		// Two checks in one process run it.
		Named("jobs").WithOptions(controller.Options{SkipNameValidation: ptr.To(true)}).For(newJob("", "")).Owns(&corev1.ConfigMap{}).
		Complete(&reconciler{manager.GetClient()})
	if err != nil {
		return nil, err
	}
	go func() { _ = manager.Start(ctx) }()
	return client.New(config, client.Options{Scheme: manager.GetScheme()})
}

func judge(ctx context.Context, c client.Client, namespace string) error {
	for i := range 10 {
		key := client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("job%d", i)}
		job, object := newJob("", ""), &corev1.ConfigMap{}
		if err := eventually(ctx, key.Name+" is done", func() bool {
			if c.Get(ctx, key, job) != nil || c.Get(ctx, key, object) != nil {
				return false
			}
			phase, _, _ := unstructured.NestedString(job.Object, "status", "phase")
			return phase == "done" && object.Data["text"] == "hello" && metav1.IsControlledBy(object, job)
		}); err != nil {
			return err
		}
		if err := c.Delete(ctx, job); err != nil {
			return err
		}
		if err := eventually(ctx, key.Name+" is gone", func() bool {
			return errors.IsNotFound(c.Get(ctx, key, job))
		}); err != nil {
			return err
		}
	}
	return nil
}
