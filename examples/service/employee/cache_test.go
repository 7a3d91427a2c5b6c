package employee

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

func TestCacheReadsThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		directory := NewDirectory(Employee{ID: "1001", Name: "Lin Yue"})
		cache := NewCache(directory, time.Minute)
		get := func(wantReads int64) {
			t.Helper()
			e, err := cache.GetByID(t.Context(), "1001")
			if err != nil || e.Name != "Lin Yue" {
				t.Fatal(e, err)
			}
			e.Name = "changed by the caller" // must not show in the cache
			if directory.Reads() != wantReads {
				t.Fatalf("the directory was read %d times, not %d", directory.Reads(), wantReads)
			}
		}
		get(1)
		get(1)
		time.Sleep(time.Minute)
		get(2)
		if _, err := cache.GetByID(t.Context(), "9"); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	cache := NewCache(nil, time.Minute)
	for i := range maxCached + 10 {
		cache.store(strconv.Itoa(i), Employee{})
	}
	if len(cache.entries) != maxCached {
		t.Fatalf("the cache holds %d entries, not %d", len(cache.entries), maxCached)
	}
}

// What the cache could answer counts all the same: the limit is above it.
func TestLimitIsAboveCache(t *testing.T) {
	directory := NewDirectory(Employee{ID: "1001"})
	svc := NewRateLimitedEmployeeService(NewCache(directory, time.Minute), runtime.New(runtime.NewMemoryStore()))
	for range 5 {
		if _, err := svc.GetByID(t.Context(), "1001"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := svc.GetByID(t.Context(), "1001"); !errors.Is(err, runtime.ErrLimited) {
		t.Fatalf("the sixth call: %v", err)
	}
	if directory.Reads() != 1 {
		t.Fatalf("the directory was read %d times, not once", directory.Reads())
	}
}
