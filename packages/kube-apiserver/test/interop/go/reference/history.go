package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// history is a list of writes to one object.
type history struct {
	// Schemas are OpenAPI v3 schemas of the kind: sets of them, as they change over time.
	Schemas []map[string]*spec.Schema `json:"schemas"`
	// Reset is what the status endpoint resets, as fieldsV1.
	Reset json.RawMessage `json:"reset"`
	Steps []step          `json:"steps"`
}

type step struct {
	Op          string          `json:"op"`
	Version     string          `json:"version"`
	Schema      int             `json:"schema"`
	Manager     string          `json:"manager"`
	Subresource string          `json:"subresource"`
	Force       bool            `json:"force"`
	Object      json.RawMessage `json:"object"`
}

// stepResult is the object after a step, or the error that the step ended with.
type stepResult struct {
	Object map[string]any `json:"object,omitempty"`
	Status any            `json:"status,omitempty"`
	Error  string         `json:"error,omitempty"`
}

const group = "example.org"

// noTime replaces all times: they come from the clock.
const noTime = "2026-01-01T00:00:00Z"

func (h *history) run() any {
	results := []stepResult{}
	var converters []managedfields.TypeConverter
	for _, schemas := range h.Schemas {
		converter, err := managedfields.NewTypeConverter(schemas, false)
		if err != nil {
			return failure(err)
		}
		converters = append(converters, converter)
	}
	var live *unstructured.Unstructured
	for _, s := range h.Steps {
		object, err := h.write(converters[s.Schema], live, s)
		if err != nil {
			results = append(results, errorOf(err))
			continue
		}
		live = object
		live.SetUID("uid")
		fixTimes(live)
		results = append(results, stepResult{Object: live.DeepCopy().Object})
	}
	return results
}

func (h *history) write(
	converter managedfields.TypeConverter, present *unstructured.Unstructured, s step,
) (*unstructured.Unstructured, error) {
	kind := schema.GroupVersionKind{Group: group, Version: s.Version, Kind: "Thing"}
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	if s.Subresource != "" {
		set := &fieldpath.Set{}
		if err := json.Unmarshal(h.Reset, &rawSet{set}); err != nil {
			return nil, err
		}
		for _, version := range []string{"v1", "v2"} {
			reset[fieldpath.APIVersion(group+"/"+version)] = fieldpath.NewExcludeSetFilter(set)
		}
	}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		converter, versions{}, nothing{}, nothing{}, kind,
		schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal}, s.Subresource, reset)
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	if present == nil {
		live.SetGroupVersionKind(kind)
		live.Object["metadata"] = map[string]any{}
	} else {
		live = present.DeepCopy()
		live.SetGroupVersionKind(kind)
	}
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(s.Object, &object.Object); err != nil {
		return nil, err
	}
	var written runtime.Object
	if s.Op == "apply" {
		written, err = manager.Apply(live, object, s.Manager, s.Force)
	} else {
		written = manager.UpdateNoErrors(live, object, s.Manager)
	}
	if err != nil {
		return nil, err
	}
	return written.(*unstructured.Unstructured), nil
}

// rawSet reads a set of fields.
type rawSet struct{ set *fieldpath.Set }

func (r *rawSet) UnmarshalJSON(data []byte) error {
	return r.set.FromJSON(bytes.NewReader(data))
}

func errorOf(err error) stepResult {
	if status, ok := err.(errors.APIStatus); ok {
		s := status.Status()
		return stepResult{Status: map[string]any{"code": s.Code, "message": s.Message, "details": s.Details}}
	}
	return stepResult{Error: err.Error()}
}

func fixTimes(object *unstructured.Unstructured) {
	entries, _, _ := unstructured.NestedSlice(object.Object, "metadata", "managedFields")
	for _, entry := range entries {
		fields := entry.(map[string]any)
		if _, ok := fields["time"]; ok {
			fields["time"] = noTime
		}
	}
	if len(entries) > 0 {
		_ = unstructured.SetNestedSlice(object.Object, entries, "metadata", "managedFields")
	}
}

// versions converts between versions that have the same fields.
type versions struct{ runtime.ObjectConvertor }

func (versions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	object, ok := in.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", in)
	}
	gv, ok := target.(schema.GroupVersion)
	if !ok {
		return nil, fmt.Errorf("unexpected target %v", target)
	}
	out := object.DeepCopy()
	if gv.Version != runtime.APIVersionInternal {
		out.SetAPIVersion(gv.String())
	}
	return out, nil
}

// nothing sets no defaults and makes objects without fields.
type nothing struct{}

func (nothing) Default(runtime.Object) {}

func (nothing) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	object.SetGroupVersionKind(kind)
	return object, nil
}
