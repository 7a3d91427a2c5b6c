//go:build !race

package effort

const raced = false
