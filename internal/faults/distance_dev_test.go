package faults

import ("testing";"fmt";"os")

func TestDevDistance(t *testing.T) {
	for _, d := range Distances(t, os.Getenv("FULL") == "") { fmt.Printf("%+v %.3f%%\n", d, 100*float64(d.Undecided)/float64(d.Calls)) }
}
func TestDevStall(t *testing.T) {
	for _, d := range Stalls(t, os.Getenv("FULL") == "") { fmt.Printf("%+v\n", d) }
}
