// The two questions to the container runtime that kubectl does not ask. Built within the source tree of Kubernetes.
//
//	cri ENDPOINT list POD CONTAINER   each of its containers, also ended ones: id, state, started and finished (ns), exit code
//	cri ENDPOINT remove ID
package main

import (
	"fmt"
	"os"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1alpha2"
	"k8s.io/kubernetes/pkg/kubelet/cri/remote"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cri:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("expected ENDPOINT list POD CONTAINER, or ENDPOINT remove ID")
	}
	service, err := remote.NewRemoteRuntimeService(args[0], 30*time.Second)
	if err != nil {
		return err
	}
	if args[1] == "remove" {
		return service.RemoveContainer(args[2])
	}
	containers, err := service.ListContainers(&runtime.ContainerFilter{LabelSelector: map[string]string{
		"io.kubernetes.pod.name": args[2], "io.kubernetes.container.name": args[3]}})
	if err != nil {
		return err
	}
	for _, container := range containers {
		status, err := service.ContainerStatus(container.Id)
		if err != nil {
			return err
		}
		fmt.Println(status.Id, status.State, status.StartedAt, status.FinishedAt, status.ExitCode)
	}
	return nil
}
