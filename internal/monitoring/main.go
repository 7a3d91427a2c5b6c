// Command monitoring writes the Grafana dashboard of docs/monitoring. Its tests ask a
// real Prometheus every query of the dashboard and of the alerts.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

//go:generate go run . ../../docs/monitoring/dashboard.json

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: monitoring FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], dashboard(), 0o666); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

type object map[string]any

// source is the data source that the user chooses.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// dashboard returns the dashboard in Grafana's JSON.
func dashboard() []byte {
	var panels []object
	y, id := 0, 0
	add := func(o object, x, w, h int) {
		id++
		o["id"], o["gridPos"] = id, object{"x": x, "y": y, "w": w, "h": h}
		panels = append(panels, o)
	}
	for _, row := range rows {
		add(object{"type": "row", "title": row.title, "collapsed": false, "panels": []object{}}, 0, 24, 1)
		y++
		x, height := 0, 0
		for _, p := range row.panels {
			if x+p.width > 24 {
				x, y = 0, y+height
			}
			if height = 8; p.kind == "stat" {
				height = 4
			}
			add(p.object(), x, p.width, height)
			x += p.width
		}
		y += height
	}
	out := new(bytes.Buffer)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(object{ // it can be encoded
		"title": "rategen", "uid": "rategen", "tags": []string{"rategen"}, "schemaVersion": 39, "editable": true,
		"description": "Rate limits: who is refused, the rules in force, and Redis.",
		"refresh":     "30s", "time": object{"from": "now-1h", "to": "now"}, "timezone": "browser",
		"templating": object{"list": []object{
			{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
			variable("job", "Job", `label_values(rategen_rule_info, job)`),
			variable("rule", "Rule", `label_values(rategen_near_limit_total{job=~"$job"}, rule)`),
		}},
		"panels": panels,
	})
	return out.Bytes()
}

// variable returns a selection of several values of a label.
func variable(name, label, query string) object {
	return object{
		"name": name, "label": label, "type": "query", "datasource": source,
		"query": object{"query": query, "refId": name}, "definition": query,
		"refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".*",
		"current": object{"text": "All", "value": "$__all"},
	}
}

// object returns the panel in Grafana's JSON.
func (p panel) object() object {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend, "range": p.kind != "stat", "instant": p.kind == "stat",
		})
	}
	o := object{
		"type": p.kind, "title": p.title, "description": p.about, "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
	}
	if p.kind == "stat" {
		o["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "none", "graphMode": "none"}
		return o
	}
	custom := object{"fillOpacity": 10, "showPoints": "never"}
	if p.stack {
		custom["stacking"] = object{"mode": "normal", "group": "A"}
		custom["fillOpacity"] = 40
	}
	o["fieldConfig"] = object{"defaults": object{"unit": p.unit, "min": 0, "custom": custom}, "overrides": []object{}}
	o["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	return o
}
