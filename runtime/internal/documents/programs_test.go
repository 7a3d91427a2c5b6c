package documents

import (
	"testing"

	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// TestPrograms plays the documents of limiters.
func TestPrograms(t *testing.T) {
	client := redistest.Start(t).Client(t)
	RunPrograms(t, Documents(t, "limiter/*.txt"), redisclock.NewServer(t, client))
}
