package progress

import "os"

// IsTerminal reports whether a file is a terminal, or a device like one; not the one
// that swallows all.
func IsTerminal(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
