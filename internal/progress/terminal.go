package progress

import "os"

// isTerminal reports whether a file is a character device. Others than terminals
// are, such as /dev/null, and take what is written to them without harm.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
