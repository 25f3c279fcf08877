// Command reference answers what Kubernetes' own libraries make of patches and of managed fields.
// It reads one case a line and writes one result a line, both as JSON. packages/kube-apiserver compares
// its implementation with the results.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// testCase is one line of the input. Type selects which of the other fields count.
type testCase struct {
	Type     string          `json:"type"`
	Document json.RawMessage `json:"document"`
	Patch    json.RawMessage `json:"patch"`
	History  *history        `json:"history"`
}

// result is one line of the output: a value, or the text of an error.
type result struct {
	Value any    `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
	Code  int    `json:"code,omitempty"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for in.Scan() {
		var c testCase
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := encoder.Encode(run(c)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func run(c testCase) (r any) {
	defer func() {
		if p := recover(); p != nil {
			r = result{Error: fmt.Sprintf("panic: %v", p)}
		}
	}()
	switch c.Type {
	case "json-patch":
		return jsonPatch(c)
	case "merge-patch":
		return mergePatch(c)
	case "strategic-merge":
		return strategicMerge(c)
	case "fields":
		return fields(c)
	case "history":
		return c.History.run()
	}
	return result{Error: "unknown type"}
}
