//go:build programs

// Package programs names what is built from the Kubernetes module: the API server that the tests of
// discovery and charts run against, and kubectl of the same version.
package programs

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
