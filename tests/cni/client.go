// SPDX-License-Identifier: GPL-2.0-or-later

// Calls the plugins of a conflist as a container runtime does, by libcni:
//
//	client ADD|CHECK|DEL CONFLIST NETNS CONTAINER INTERFACE [ANNOTATION=VALUE]…
//	client DEL-CACHED NETWORK NETNS CONTAINER INTERFACE        as CRI-O: with the configuration of ADD
//	client GC CONFLIST [CONTAINER:INTERFACE]…      the attachments that are valid
//	client STATUS|VERSION CONFLIST
//
// $CNI_PATH has the plugins, $CNI_CACHE what libcni remembers. Prints the result, or "CODE MESSAGE; DETAILS" on
// standard error, and exits with 1.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
)

const annotationsCapability = "io.kubernetes.cri.pod-annotations"

func runtimeOf(arguments []string) *libcni.RuntimeConf {
	annotations := map[string]string{}
	for _, pair := range arguments[3:] {
		name, value, _ := strings.Cut(pair, "=")
		annotations[name] = value
	}
	return &libcni.RuntimeConf{
		NetNS:          arguments[0],
		ContainerID:    arguments[1],
		IfName:         arguments[2],
		Args:           [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", "web-1"}},
		CapabilityArgs: map[string]interface{}{annotationsCapability: annotations},
	}
}

func gcArgsOf(arguments []string) *libcni.GCArgs {
	valid := []types.GCAttachment{}
	for _, pair := range arguments {
		container, name, _ := strings.Cut(pair, ":")
		valid = append(valid, types.GCAttachment{ContainerID: container, IfName: name})
	}
	return &libcni.GCArgs{ValidAttachments: valid}
}

func delCached(ctx context.Context, cni *libcni.CNIConfig, network string, runtime *libcni.RuntimeConf) error {
	cached, runtime, err := cni.GetNetworkListCachedConfig(&libcni.NetworkConfigList{Name: network}, runtime)
	if err != nil {
		return err
	}
	list, err := libcni.ConfListFromBytes(cached)
	if err != nil {
		return err
	}
	return cni.DelNetworkList(ctx, list, runtime)
}

func call(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("no verb, or no conflist")
	}
	ctx := context.Background()
	verb, rest := arguments[0], arguments[2:]
	cni := libcni.NewCNIConfigWithCacheDir(filepath.SplitList(os.Getenv("CNI_PATH")), os.Getenv("CNI_CACHE"), nil)
	if verb == "DEL-CACHED" {
		return delCached(ctx, cni, arguments[1], runtimeOf(rest))
	}
	list, err := libcni.ConfListFromFile(arguments[1])
	if err != nil {
		return err
	}
	switch verb {
	case "STATUS":
		return cni.GetStatusNetworkList(ctx, list)
	case "GC":
		return cni.GCNetworkList(ctx, list, gcArgsOf(rest))
	case "VERSION":
		_, err := cni.ValidateNetworkList(ctx, list)
		return err
	}
	if len(rest) < 3 {
		return errors.New("no namespace, container or interface")
	}
	switch verb {
	case "ADD":
		result, err := cni.AddNetworkList(ctx, list, runtimeOf(rest))
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(result)
	case "CHECK":
		return cni.CheckNetworkList(ctx, list, runtimeOf(rest))
	case "DEL":
		return cni.DelNetworkList(ctx, list, runtimeOf(rest))
	}
	return fmt.Errorf("%s: no such verb", verb)
}

func main() {
	err := call(os.Args[1:])
	if err == nil {
		return
	}
	code := uint(0)
	var failure *types.Error
	if errors.As(err, &failure) {
		code = failure.Code
	}
	fmt.Fprintln(os.Stderr, code, err)
	os.Exit(1)
}
