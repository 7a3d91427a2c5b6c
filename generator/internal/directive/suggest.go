package directive

import (
	"fmt"

	"github.com/rategen/rategen/internal/nearest"
)

// Suggest returns ` (did you mean "x"?)` for the candidate nearest to what was
// written, or "" if none is near.
func Suggest(written string, candidates []string) string {
	return didYouMean(nearest.Name(written, candidates))
}

func didYouMean(best string) string {
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}
