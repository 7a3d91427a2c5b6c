package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// profile writes what is in use of the heap, as of the collection before, to a file
// that is named by the round. Two of them are compared by go tool pprof -base.
func (p *process) profile(round uint32) error {
	file, err := os.Create(filepath.Join(p.Profiles, fmt.Sprintf("%05d.heap", round)))
	if err != nil {
		return err
	}
	defer file.Close()
	return pprof.Lookup("heap").WriteTo(file, 0)
}
