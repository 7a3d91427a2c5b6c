package emit

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/internal/spec"
)

// comment writes a comment, broken into lines. Each has its slashes, or one that begins with
// a quoted comment would be taken for that.
func comment(g *jen.Group, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len("// ")+len(line)+1+len(word) > 77 {
			g.Comment("// " + line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	g.Comment("// " + line)
}

func indefinite(name string) string {
	if strings.ContainsRune("aeioAEIO", []rune(name)[0]) || strings.HasPrefix(strings.ToLower(name), "un") {
		return "an"
	}
	return "a"
}

// methodDoc says in one sentence how a method is limited.
func methodDoc(m *model.Method) string {
	if len(m.Limits) == 0 {
		return m.Name + " has no limit."
	}
	var limits []string
	for _, l := range m.Limits {
		limits = append(limits, limitDoc(l))
	}
	text := limits[0]
	if n := len(limits); n > 1 {
		text = strings.Join(limits[:n-1], ", ") + " and to " + limits[n-1]
	}
	return m.Name + " is limited to " + text + "."
}

func limitDoc(l *model.Limit) string {
	text := fmt.Sprintf("%s per %s", l.Rule.MaxText(), l.Rule.PerText())
	if l.IsPermit() {
		text = l.Rule.MaxText() + " in flight"
	}
	if key := l.Rule.KeyText(); key != "" {
		text += " for each " + key
	}
	if share := l.Rule.ShareText(); share != "" {
		text += ", shared by " + share
	}
	if l.When != nil {
		text += " when " + l.When.Source.Text
	}
	if by := l.Rule.Adaptive(); len(by) > 0 {
		text += " (adapts to " + strings.Join(by, " and ") + ")"
	}
	var notes []string
	if l.Refund != nil && l.Settle != nil {
		notes = append(notes, fmt.Sprintf("refunded if %s, else settled at %s", l.Refund.Source.Text, l.Settle.Source.Text))
	} else if l.Refund != nil {
		notes = append(notes, "refunded if "+l.Refund.Source.Text)
	} else if l.Settle != nil {
		notes = append(notes, "settled at "+l.Settle.Source.Text)
	}
	if l.Meter != nil {
		notes = append(notes, "each message costs "+l.Meter.Source.Text)
	}
	if l.Hold != nil {
		notes = append(notes, "held back for "+l.Hold.Source.Text)
	}
	if l.Rule.Block() > 0 {
		notes = append(notes, "a refusal blocks for "+l.Rule.BlockText())
	}
	if l.Rule.Reserve() > 0 {
		notes = append(notes, "reserved for "+l.Rule.ReserveText())
	}
	if lease := l.Rule.Lease(); lease > 0 {
		notes = append(notes, "leased for "+spec.DurationText(lease))
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	if !l.Rule.Refuses() {
		text += " in " + l.Rule.Mode() + " mode"
	}
	return text
}
