// Package nearest finds the known name that is most like a misspelt one.
package nearest

import (
	"fmt"
	"strings"
)

// Name returns the candidate nearest to what was written, or "" if none is near.
func Name(written string, candidates []string) string {
	best, bestDistance := "", 1+max(1, min(3, len(written)/3))
	for _, c := range candidates {
		d := Distance(strings.ToLower(written), strings.ToLower(c))
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// Hint asks whether the candidate nearest to what was written is meant, or says nothing if none is near.
func Hint(written string, candidates []string) string {
	if best := Name(written, candidates); best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ""
}

// Distance counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(x)][len(y)]
}
