//go:build tools

// Package tools names what scripts/kubernetes/build builds.
package tools

import _ "github.com/coredns/coredns"
