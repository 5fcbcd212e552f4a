// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/xeipuuv/gojsonschema"
	"sigs.k8s.io/yaml"
)

type values = map[string]interface{}

// merge - @over wins; maps are merged, everything else is replaced, null removes the key, or stays if @keep: what is
// still to be merged into something else.
func merge(base, over values, keep bool) values {
	for key, value := range over {
		if value == nil && !keep {
			delete(base, key)
			continue
		}
		below, isMap := value.(values)
		was, wasMap := base[key].(values)
		if isMap && wasMap {
			base[key] = merge(was, below, keep)
		} else {
			base[key] = value
		}
	}
	return base
}

func readYAML(path string) (values, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v := values{}
	if err := yaml.UnmarshalStrict(text, &v); err != nil {
		return nil, fmt.Errorf("%s: %s", path, err)
	}
	return v, nil
}

// guess - the type that --set gives a text: null, a truth value, a whole number, else a text.
func guess(text string, plain bool) interface{} {
	if plain {
		return text
	}
	switch text {
	case "null":
		return nil
	case "true":
		return true
	case "false":
		return false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && (text == "0" || text[0] != '0') {
		return n
	}
	return text
}

// split - @text at each @at that stands neither behind a backslash nor in braces.
func split(text string, at byte) []string {
	var parts []string
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '{':
			depth++
		case text[i] == '}':
			depth--
		case text[i] == at && depth == 0:
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}

func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// assign - puts @value at the end of @path (a.b[0].c) and returns what stands where the path begins.
func assign(at interface{}, path []string, value interface{}) (interface{}, error) {
	if len(path) == 0 {
		return value, nil
	}
	if index, err := strconv.Atoi(path[0]); err == nil && strings.HasPrefix(path[0], "0") == (index == 0) {
		if list, ok := at.([]interface{}); ok || at == nil {
			if index > len(list) || index < 0 {
				return nil, fmt.Errorf("the list has no place %d", index)
			}
			if index == len(list) {
				list = append(list, nil)
			}
			list[index], err = assign(list[index], path[1:], value)
			return list, err
		}
	}
	m, ok := at.(values)
	if !ok {
		m = values{}
	}
	below, err := assign(m[path[0]], path[1:], value)
	m[path[0]] = below
	return m, err
}

func pathOf(key string) []string {
	var path []string
	for _, part := range split(key, '.') {
		for i, piece := range strings.Split(strings.ReplaceAll(part, "]", ""), "[") {
			if piece != "" || i == 0 {
				path = append(path, unescape(piece))
			}
		}
	}
	return path
}

func set(v values, text string, plain bool) error {
	for _, pair := range split(text, ',') {
		halves := strings.SplitN(pair, "=", 2)
		if len(halves) != 2 || halves[0] == "" {
			return fmt.Errorf("--set %s: KEY=VALUE is needed", pair)
		}
		var value interface{}
		if list := halves[1]; strings.HasPrefix(list, "{") && strings.HasSuffix(list, "}") {
			items := []interface{}{}
			for _, item := range split(list[1:len(list)-1], ',') {
				if item != "" {
					items = append(items, guess(unescape(item), plain))
				}
			}
			value = items
		} else {
			value = guess(unescape(halves[1]), plain)
		}
		if _, err := assign(v, pathOf(halves[0]), value); err != nil {
			return fmt.Errorf("--set %s: %s", pair, err)
		}
	}
	return nil
}

// collect - the chart's values with what the command line says.
func collect(o options) (values, error) {
	base, err := readYAML(filepath.Join(o.chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	over := values{}
	for _, s := range o.sets {
		if s.file {
			v, err := readYAML(s.text)
			if err != nil {
				return nil, err
			}
			over = merge(over, v, true)
		} else if err := set(over, s.text, s.plain); err != nil {
			return nil, err
		}
	}
	return merge(base, over, false), nil
}

// validate - with the library that Helm uses, and its words.
func validate(chart, name string, v values) error {
	schema, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	result, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(schema), gojsonschema.NewBytesLoader(text))
	if err != nil {
		return fmt.Errorf("values.schema.json: %s", err)
	}
	if result.Valid() {
		return nil
	}
	var lines []string
	for _, e := range result.Errors() {
		lines = append(lines, "- "+e.String())
	}
	sort.Strings(lines)
	return fmt.Errorf("values don't meet the specifications of the schema(s) in the following chart(s):\n%s:\n%s",
		name, strings.Join(lines, "\n"))
}
