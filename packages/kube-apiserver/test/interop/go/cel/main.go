// Evaluates expressions with Kubernetes' own CEL environment: one JSON request a line on standard
// input, one JSON result a line on standard output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/google/cel-go/checker"
)

type request struct {
	Expr   string                           `json:"expr"`
	Schema *apiextensionsv1.JSONSchemaProps `json:"schema,omitempty"`
	Self   json.RawMessage                  `json:"self,omitempty"`
}

type result struct {
	Compile string `json:"compile,omitempty"`
	Type    string `json:"type,omitempty"`
	Value   string `json:"value,omitempty"`
	Error   string `json:"error,omitempty"`
	Cost    uint64 `json:"cost"`
	Max     uint64 `json:"max"`
}

type sizes struct{ root *apiservercel.DeclType }

func (s *sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func (s *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if s.root == nil || len(element.Path()) == 0 {
		return nil
	}
	at := s.root
	for _, name := range element.Path()[1:] {
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field, ok := at.Fields[name]
			if !ok {
				return nil
			}
			at = field.Type
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(at.MaxElements)}
}

func shown(value ref.Val) string {
	return fmt.Sprintf("%v", value.Value())
}

func evaluate(in request) (out result) {
	envs := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	var decl *apiservercel.DeclType
	var structural *structuralschema.Structural
	if in.Schema != nil {
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(in.Schema, internal, nil); err != nil {
			return result{Compile: err.Error()}
		}
		var err error
		if structural, err = structuralschema.NewStructural(internal); err != nil {
			return result{Compile: err.Error()}
		}
		decl = model.SchemaDeclType(structural, false).MaybeAssignTypeName("selfType")
		if envs, err = envs.Extend(environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions:        []cel.EnvOption{cel.Variable("self", decl.CelType())},
			DeclTypes:         []*apiservercel.DeclType{decl},
		}); err != nil {
			return result{Compile: err.Error()}
		}
	}
	env := envs.NewExpressionsEnv()
	ast, issues := env.Compile(in.Expr)
	if issues != nil {
		return result{Compile: issues.String()}
	}
	out.Type = ast.OutputType().String()
	estimator := &library.CostEstimator{SizeEstimator: &sizes{decl}}
	estimate, err := env.EstimateCost(ast, estimator)
	if err != nil {
		return result{Compile: err.Error()}
	}
	out.Max = estimate.Max
	program, err := env.Program(ast, cel.CostTracking(estimator))
	if err != nil {
		return result{Compile: err.Error()}
	}
	variables := map[string]any{}
	if in.Schema != nil {
		var self any
		// Whole numbers become int64, as in the API server.
		if err := utiljson.Unmarshal(in.Self, &self); err != nil {
			return result{Compile: err.Error()}
		}
		variables["self"] = common.UnstructuredToVal(self, &model.Structural{Structural: structural})
	}
	value, details, err := program.Eval(variables)
	if details != nil && details.ActualCost() != nil {
		out.Cost = *details.ActualCost()
	}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Value = shown(value)
	return out
}


func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var one request
		if err := json.Unmarshal(in.Bytes(), &one); err != nil {
			panic(err)
		}
		_ = out.Encode(evaluate(one))
	}
}
