package script

// Source returns the text of an execution's script.
func (l *Library) Source(e *Execution) string { return l.text(e.request.set).source() }
