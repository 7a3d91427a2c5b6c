package findings

import (
	"sync"
	"testing"
)

// TestMap wants one value for each key, whoever comes at the same time, up to the bound.
func TestMap(t *testing.T) {
	for _, callers := range []int{1, 2, 8} {
		var m Map[int, int]
		var all sync.WaitGroup
		made := make([][]*int, callers)
		for c := range callers {
			all.Go(func() {
				for key := range 2 * Most {
					made[c] = append(made[c], m.Made(key))
				}
			})
		}
		all.Wait()
		if n := m.Len(); n < Most || n >= Most+callers {
			t.Errorf("%d callers: %d keys", callers, n)
		}
		kept := 0
		for key := range 2 * Most {
			found := m.Find(key)
			for c := range callers {
				if one := made[c][key]; one != nil && one != found {
					t.Fatalf("%d callers: key %d has two values", callers, key)
				}
			}
			if found != nil {
				kept++
			}
		}
		listed := 0
		for key, value := range m.All() {
			listed++
			if m.Find(key) != value {
				t.Errorf("key %d is listed with another value", key)
			}
		}
		if kept != m.Len() || listed != kept || m.Keep(-1, new(int)) {
			t.Errorf("%d callers: %d of %d keys found, %d listed", callers, kept, m.Len(), listed)
		}
	}
}

// TestKeep wants the first value to stay.
func TestKeep(t *testing.T) {
	var m Map[string, int]
	if m.Find("k") != nil || !m.Keep("k", new(1)) || m.Keep("k", new(2)) || *m.Made("k") != 1 || m.Find("other") != nil {
		t.Error("not the first value")
	}
}
