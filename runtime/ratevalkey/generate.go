package ratevalkey

//go:generate go run copy.go
