package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// texts tell licences apart by what only they say. Those before the blank one are not
// permissive: they ask for more than to be named.
var texts = []struct{ name, says string }{
	{"GPL", "gnu general public license"},
	{"LGPL", "gnu lesser general public license"},
	{"AGPL", "gnu affero general public license"},
	{"MPL", "mozilla public license"},
	{"EPL", "eclipse public license"},
	{"SSPL", "server side public license"},
	{"BUSL", "business source license"},
	{"", ""},
	{"Apache-2.0", "apache license version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy of this software"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
	{"BSD", "redistribution and use in source and binary forms, with or without modification, are permitted"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
}

// licenceIn returns the licences of the module in a directory, and an error if there is
// none or one is not permissive.
func licenceIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "LICENSE") && !strings.HasPrefix(name, "LICENCE") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		names, err := licencesOf(string(text))
		if err != nil {
			return "", fmt.Errorf("%s: %w", e.Name(), err)
		}
		found = append(found, names...)
	}
	if len(found) == 0 {
		return "", errors.New("it has no licence")
	}
	return strings.Join(found, ", "), nil
}

// licencesOf returns the licences that a file contains.
func licencesOf(text string) (names []string, err error) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	text = strings.ReplaceAll(text, "license, version", "license version")
	permissive := false
	for _, t := range texts {
		switch {
		case t.name == "":
			permissive = true
		case !strings.Contains(text, t.says):
		case !permissive:
			return nil, fmt.Errorf("%s is not a permissive licence", t.name)
		case t.name == "BSD" && strings.Contains(text, "neither the name"):
			names = append(names, "BSD-3-Clause")
		case t.name == "BSD":
			names = append(names, "BSD-2-Clause")
		default:
			names = append(names, t.name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("this licence is unknown")
	}
	return names, nil
}
