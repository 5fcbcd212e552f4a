// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/semver"
	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type document struct {
	source, text string
	object       interface{}
}

type rendered struct {
	documents []document
	notes     string
}

type kubeVersion struct{ Version, Major, Minor string }

func (k kubeVersion) String() string     { return k.Version }
func (k kubeVersion) GitVersion() string { return k.Version }

type apiVersions []string

func (a apiVersions) Has(name string) bool {
	for _, have := range a {
		if have == name {
			return true
		}
	}
	return false
}

type files struct{ chart string }

func (f files) Get(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(f.chart, filepath.FromSlash(path.Clean("/"+name))))
	if os.IsNotExist(err) {
		return "", nil
	}
	return string(text), err
}

// chartOf - Chart.yaml with the names that templates use: .Chart.AppVersion.
func chartOf(folder string) (values, error) {
	read, err := readYAML(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	chart := values{}
	for key, value := range read {
		chart[strings.ToUpper(key[:1])+key[1:]] = value
	}
	for _, key := range []string{"Name", "Version", "AppVersion"} {
		if text, ok := chart[key].(string); !ok || text == "" {
			return nil, fmt.Errorf("Chart.yaml: %s must be a text", key)
		}
	}
	return chart, nil
}

func toYAML(v interface{}) (string, error) {
	text, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(text), "\n"), err
}

// lookupIn - objects of a file, as the cluster would give them: one by name, or a list of all.
func lookupIn(name string) (func(string, string, string, string) (values, error), error) {
	var objects []values
	if name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(text, &objects); err != nil {
			return nil, fmt.Errorf("%s: %s", name, err)
		}
	}
	return func(api, kind, namespace, name string) (values, error) {
		items := []interface{}{}
		for _, o := range objects {
			meta, _ := o["metadata"].(values)
			if o["apiVersion"] != api || o["kind"] != kind ||
				(namespace != "" && meta["namespace"] != namespace) {
				continue
			}
			if name != "" && meta["name"] == name {
				return o, nil
			}
			items = append(items, o)
		}
		if name != "" || len(objects) == 0 {
			return values{}, nil
		}
		return values{"items": items}, nil
	}, nil
}

func functions(t *template.Template, o options) (template.FuncMap, error) {
	f := sprig.TxtFuncMap()
	// A chart sees nothing of the machine that renders it.
	delete(f, "env")
	delete(f, "expandenv")
	lookup, err := lookupIn(o.cluster)
	if err != nil {
		return nil, err
	}
	depth := 0
	include := func(name string, data interface{}) (string, error) {
		var b strings.Builder
		if depth++; depth > 100 {
			return "", fmt.Errorf("%s includes itself", name)
		}
		err := t.ExecuteTemplate(&b, name, data)
		depth--
		return b.String(), err
	}
	f["include"] = include
	f["lookup"] = lookup
	f["toYaml"] = toYAML
	f["fromYaml"] = func(text string) (values, error) {
		v := values{}
		return v, yaml.Unmarshal([]byte(text), &v)
	}
	f["toJson"] = func(v interface{}) (string, error) {
		text, err := json.Marshal(v)
		return string(text), err
	}
	f["required"] = func(why string, v interface{}) (interface{}, error) {
		if text, isText := v.(string); v == nil || isText && text == "" {
			return v, fmt.Errorf("%s", why)
		}
		return v, nil
	}
	f["fail"] = func(why string) (string, error) { return "", fmt.Errorf("%s", why) }
	f["tpl"] = func(text string, data interface{}) (string, error) {
		inner, err := t.Clone()
		if err != nil {
			return "", err
		}
		if inner, err = inner.New("tpl").Parse(text); err != nil {
			return "", err
		}
		var b strings.Builder
		err = inner.Execute(&b, data)
		return b.String(), err
	}
	return f, nil
}

// load - every template below templates/, named as Helm names it: chart/templates/x.yaml.
func load(o options, name string) (*template.Template, []string, error) {
	t := template.New("gotpl")
	if o.strict {
		t.Option("missingkey=error")
	} else {
		t.Option("missingkey=zero")
	}
	f, err := functions(t, o)
	if err != nil {
		return nil, nil, err
	}
	t.Funcs(f)
	paths, err := filepath.Glob(filepath.Join(o.chart, "templates", "*"))
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, nil, err
		}
		full := path.Join(name, "templates", filepath.Base(p))
		if _, err := t.New(full).Parse(string(text)); err != nil {
			return nil, nil, err
		}
		names = append(names, full)
	}
	sort.Strings(names)
	return t, names, nil
}

var separator = regexp.MustCompile(`(?m)^---[ \t]*$`)

// documents - those of one rendered file; what is empty or only comments is left out.
func documents(source, text string) ([]document, error) {
	var found []document
	for _, part := range separator.Split(text, -1) {
		part = strings.TrimSpace(part)
		var object interface{}
		if err := yaml.UnmarshalStrict([]byte(part), &object); err != nil {
			return nil, fmt.Errorf("%s: not YAML: %s\n%s", source, err, part)
		}
		if object != nil {
			found = append(found, document{source, part, object})
		}
	}
	return found, nil
}

// sentence - of what a template failed with, the words of `fail` and `required` without the way there.
func sentence(err error) error {
	text := err.Error()
	for _, call := range []string{"error calling fail: ", "error calling required: "} {
		if i := strings.LastIndex(text, call); i >= 0 {
			return fmt.Errorf("%s", text[i+len(call):])
		}
	}
	return err
}

func render(o options) (*rendered, error) {
	chart, err := chartOf(o.chart)
	if err != nil {
		return nil, err
	}
	name := chart["Name"].(string)
	v, err := collect(o)
	if err != nil {
		return nil, err
	}
	if err := validate(o.chart, name, v); err != nil {
		return nil, err
	}
	version, err := semver.NewVersion(o.kube)
	if err != nil {
		return nil, fmt.Errorf("--kube-version %s: %s", o.kube, err)
	}
	t, names, err := load(o, name)
	if err != nil {
		return nil, err
	}
	r := &rendered{}
	for _, file := range names {
		if strings.HasPrefix(path.Base(file), "_") {
			continue
		}
		data := values{
			"Values": v, "Chart": chart, "Files": files{o.chart},
			"Release": values{"Name": o.release, "Namespace": o.namespace, "Service": "Helm",
				"IsInstall": !o.upgrade, "IsUpgrade": o.upgrade, "Revision": 1},
			"Capabilities": values{"APIVersions": apiVersions(o.apis), "KubeVersion": kubeVersion{
				"v" + version.String(), fmt.Sprint(version.Major()), fmt.Sprint(version.Minor())}},
			"Template": values{"Name": file, "BasePath": path.Join(name, "templates")},
		}
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, file, data); err != nil {
			return nil, sentence(err)
		}
		text := strings.ReplaceAll(b.String(), "<no value>", "")
		if path.Base(file) == "NOTES.txt" {
			r.notes = text
			continue
		}
		found, err := documents(file, text)
		if err != nil {
			return nil, err
		}
		r.documents = append(r.documents, found...)
	}
	return r, nil
}
