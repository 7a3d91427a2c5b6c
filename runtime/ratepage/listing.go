package ratepage

import (
	"encoding/json"
	"net/http"

	"github.com/rategen/rategen/internal/rulelist"
)

// serveListing serves the rules as they are declared, one a line.
func (p *Page) serveListing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/jsonl; charset=utf-8")
	lines := json.NewEncoder(w)
	for _, s := range p.rules() {
		l := rulelist.New(s.Rule)
		l.KeyParts = s.KeyParts
		if byCall(s.Rule) {
			l.Max = "by call"
		}
		if lines.Encode(l) != nil {
			return // the viewer is gone
		}
	}
}
