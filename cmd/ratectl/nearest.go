package main

import "fmt"

// suggest returns a hint at the candidate that is nearest to what was written, or
// nothing if none is near.
func suggest(written string, candidates []string) string {
	best, least := "", 1+max(1, len(written)/3)
	for _, c := range candidates {
		if d := distance(written, c); d < least {
			best, least = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", best)
}

// distance counts the insertions, deletions and substitutions that turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, change)
		}
	}
	return row[len(b)]
}
