package override

import (
	"encoding/binary"
	"hash/maphash"
)

// A digest tells sets of fields apart. It depends on two seeds of this process,
// so that nobody can foresee which sets have the same.
type digest [2]uint64

var digestSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// digestOf returns the digest of fields, in whatever order they come.
func digestOf(fields map[string]string) (d digest) {
	d[0] = uint64(len(fields))
	for i, seed := range digestSeeds {
		var h maphash.Hash
		h.SetSeed(seed)
		for name, value := range fields {
			var length [8]byte
			binary.LittleEndian.PutUint64(length[:], uint64(len(name)))
			h.Reset()
			h.Write(length[:])
			h.WriteString(name)
			h.WriteString(value)
			d[i] += h.Sum64()
		}
	}
	return d
}
