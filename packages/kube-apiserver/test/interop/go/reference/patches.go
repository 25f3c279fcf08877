package main

import (
	"bytes"
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func failure(err error) result {
	return result{Error: err.Error()}
}

func success(data []byte) result {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return failure(err)
	}
	return result{Value: value}
}

// fields brings fieldsV1 into their canonical form, as text.
func fields(c testCase) result {
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(c.Document)); err != nil {
		return failure(err)
	}
	text, err := set.ToJSON()
	if err != nil {
		return failure(err)
	}
	return result{Value: string(text)}
}

func jsonPatch(c testCase) result {
	jsonpatch.AccumulatedCopySizeLimit = 3 << 20
	patch, err := jsonpatch.DecodePatch(c.Patch)
	if err != nil {
		return result{Error: err.Error(), Code: 400}
	}
	data, err := patch.Apply(c.Document)
	if err != nil {
		return result{Error: err.Error(), Code: 422}
	}
	return success(data)
}

func mergePatch(c testCase) result {
	data, err := jsonpatch.MergePatch(c.Document, c.Patch)
	if err != nil {
		return failure(err)
	}
	return success(data)
}

// thing has a field for each way in which strategic merges treat fields.
type thing struct {
	Metadata thingMeta         `json:"metadata"`
	Data     map[string]string `json:"data"`
	Mode     thingMode         `json:"mode" patchStrategy:"retainKeys"`
	Whole    thingMode         `json:"whole" patchStrategy:"replace"`
	Items    []thingItem       `json:"items" patchStrategy:"merge" patchMergeKey:"name"`
	Kept     []thingItem       `json:"kept" patchStrategy:"merge,retainKeys" patchMergeKey:"name"`
	Plain    []thingItem       `json:"plain"`
	Words    []string          `json:"words" patchStrategy:"merge"`
	Numbers  []int64           `json:"numbers" patchStrategy:"merge"`
	Rest     []string          `json:"rest"`
}

type thingMeta struct {
	Name       string            `json:"name"`
	Labels     map[string]string `json:"labels"`
	Finalizers []string          `json:"finalizers" patchStrategy:"merge"`
}

type thingMode struct {
	Type string    `json:"type"`
	A    string    `json:"a"`
	B    thingItem `json:"b"`
}

type thingItem struct {
	Name  string      `json:"name"`
	Value string      `json:"value"`
	Count int64       `json:"count"`
	Ports []thingPort `json:"ports" patchStrategy:"merge" patchMergeKey:"port"`
	Args  []string    `json:"args"`
}

type thingPort struct {
	Port     int64  `json:"port"`
	Protocol string `json:"protocol"`
}

func strategicMerge(c testCase) result {
	var document, patch map[string]any
	if err := utiljson.Unmarshal(c.Document, &document); err != nil {
		return failure(err)
	}
	if err := utiljson.Unmarshal(c.Patch, &patch); err != nil {
		return failure(err)
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(document, patch, &thing{})
	if err != nil {
		return failure(err)
	}
	return result{Value: merged}
}
