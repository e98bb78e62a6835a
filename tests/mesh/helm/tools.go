//go:build tools

// Package tools names what scripts/helm builds.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
