package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A series is the name and the labels of one line of a scrape.
type series struct {
	name   string
	labels map[string]string
}

// readSeries reads a scrape. A histogram has the names of its lines.
func readSeries(r io.Reader) (all []series, err error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	for name, family := range families {
		names := []string{name}
		if family.GetType() == dto.MetricType_HISTOGRAM {
			names = []string{name + "_bucket", name + "_sum", name + "_count"}
		}
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			for _, name := range names {
				all = append(all, series{name, labels})
			}
		}
	}
	return all, err
}

func contains(all []series, name string) bool {
	return slices.ContainsFunc(all, func(s series) bool { return s.name == name })
}

var (
	selector = regexp.MustCompile(`\b(rategen_\w+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right) *\(([^)]*)\)`)
)

// target are the labels that Prometheus adds to every series.
var target = map[string]bool{"job": true, "instance": true}

// check returns an error unless each selector of an expression matches a series, and
// each label that it groups by is one of these series.
func check(expr string, all []series) error {
	known := map[string]bool{"le": strings.Contains(expr, "_bucket")}
	for label := range target {
		known[label] = true
	}
	selectors := selector.FindAllStringSubmatch(expr, -1)
	if len(selectors) == 0 {
		return fmt.Errorf("no metric of rategen's")
	}
	for _, found := range selectors {
		matched := false
		for _, s := range all {
			if s.name == found[1] {
				for label := range s.labels {
					known[label] = true
				}
				matched = matched || s.matches(found[2])
			}
		}
		if !matched {
			return fmt.Errorf("nothing is %s", found[0])
		}
	}
	if strings.Contains(expr, `"policy", "`) { // made by label_replace
		known["policy"] = true
	}
	for _, labels := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(labels[1], ",") {
			if label = strings.TrimSpace(label); label != "" && !known[label] {
				return fmt.Errorf("no metric has the label %s", label)
			}
		}
	}
	return nil
}

// matches reports whether the series is one that the matchers of a selector select.
func (s series) matches(matchers string) bool {
	for _, m := range matcher.FindAllStringSubmatch(matchers, -1) {
		if label, value, op := s.labels[m[1]], m[3], m[2]; !target[m[1]] {
			if _, ok := s.labels[m[1]]; !ok {
				return false
			}
			same := label == value
			if strings.HasSuffix(op, "~") {
				same = regexp.MustCompile("^(?:" + value + ")$").MatchString(label)
			}
			if same == (op[0] == '!') {
				return false
			}
		}
	}
	return true
}
