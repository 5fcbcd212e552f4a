// SPDX-License-Identifier: Apache-2.0

// helm-render - renders a Helm chart without Helm and without a cluster, for tests and for the plain manifest:
// values are merged and checked against values.schema.json, templates run with Helm's functions, and every document
// must be YAML without duplicate keys. Debian has no Helm; it has the libraries that Helm is made of.
//
// Where Helm is lax this is strict if --strict is given: a key that is not there is an error, not an empty text.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

const usage = `usage: helm-render [flags] RELEASE CHART
  -f, --values FILE      values that override the chart's; may be repeated
  --set KEY=VALUE,…      one value; may be repeated
  --set-string KEY=VALUE likewise, always a text
  --namespace NAME       namespace of the release (default: default)
  --kube-version V       version of the cluster (default: 1.33.0)
  --api-versions V       an API that the cluster has; may be repeated
  --cluster FILE         objects that the cluster has, for lookup (default: none, as for helm template)
  --strict               a key that is not there is an error
  --upgrade              an upgrade, not an installation
  --notes                print NOTES.txt alone
  --json                 print the objects as an array of JSON
  --defaults             print the chart's values with what was given, as JSON, and render nothing
`

type options struct {
	release, chart, namespace, kube, cluster string
	sets                                     []setting
	apis                                     []string
	strict, upgrade, notes, json, defaults   bool
}

// setting - what -f, --set and --set-string said, in the order in which Helm applies them: files first.
type setting struct {
	text        string
	file, plain bool
}

func parse(args []string) (options, error) {
	o := options{namespace: "default", kube: "1.33.0"}
	var files, sets []setting
	var names []string
	next := func(i *int) (string, error) {
		if *i++; *i >= len(args) {
			return "", fmt.Errorf("%s: the value is missing", args[*i-1])
		}
		return args[*i], nil
	}
	for i := 0; i < len(args); i++ {
		var text string
		var err error
		switch arg := args[i]; arg {
		case "-f", "--values":
			text, err = next(&i)
			files = append(files, setting{text: text, file: true})
		case "--set":
			text, err = next(&i)
			sets = append(sets, setting{text: text})
		case "--set-string":
			text, err = next(&i)
			sets = append(sets, setting{text: text, plain: true})
		case "--namespace":
			o.namespace, err = next(&i)
		case "--kube-version":
			o.kube, err = next(&i)
		case "--cluster":
			o.cluster, err = next(&i)
		case "--api-versions":
			text, err = next(&i)
			o.apis = append(o.apis, text)
		case "--strict":
			o.strict = true
		case "--upgrade":
			o.upgrade = true
		case "--notes":
			o.notes = true
		case "--json":
			o.json = true
		case "--defaults":
			o.defaults = true
		default:
			if strings.HasPrefix(arg, "-") {
				return o, fmt.Errorf("unknown flag %s", arg)
			}
			names = append(names, arg)
		}
		if err != nil {
			return o, err
		}
	}
	if len(names) != 2 {
		return o, fmt.Errorf("a name for the release and a chart are needed")
	}
	o.release, o.chart = names[0], names[1]
	o.sets = append(files, sets...)
	return o, nil
}

func print(o options, r *rendered, out io.Writer) error {
	if o.notes {
		_, err := io.WriteString(out, r.notes)
		return err
	}
	if o.json {
		objects := []interface{}{}
		for _, d := range r.documents {
			objects = append(objects, d.object)
		}
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return e.Encode(objects)
	}
	for _, d := range r.documents {
		if _, err := fmt.Fprintf(out, "---\n# Source: %s\n%s\n", d.source, d.text); err != nil {
			return err
		}
	}
	return nil
}

func printValues(o options, out io.Writer) error {
	v, err := collect(o)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(v)
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "helm-render: %s\n%s", err, usage)
		os.Exit(64)
	}
	var r *rendered
	if o.defaults {
		err = printValues(o, os.Stdout)
	} else if r, err = render(o); err == nil {
		err = print(o, r, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: %s\n", err)
		os.Exit(1)
	}
}
