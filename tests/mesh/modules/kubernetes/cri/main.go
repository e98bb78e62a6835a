// Command cri asks the container runtime what kubectl does not.
//
//	cri ENDPOINT list POD CONTAINER   each of its containers, also ended ones: id, state, started and finished (ns), exit code
//	cri ENDPOINT remove ID
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cri:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	lists := len(args) == 4 && args[1] == "list"
	removes := len(args) == 3 && args[1] == "remove"
	if !lists && !removes {
		return fmt.Errorf("expected ENDPOINT list POD CONTAINER, or ENDPOINT remove ID")
	}
	connection, err := grpc.NewClient(args[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	service := runtime.NewRuntimeServiceClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	if removes {
		_, err := service.RemoveContainer(ctx, &runtime.RemoveContainerRequest{ContainerId: args[2]})
		return err
	}
	list, err := service.ListContainers(ctx, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": args[2], "io.kubernetes.container.name": args[3]}}})
	if err != nil {
		return err
	}
	for _, container := range list.Containers {
		response, err := service.ContainerStatus(ctx, &runtime.ContainerStatusRequest{ContainerId: container.Id})
		if err != nil {
			return err
		}
		status := response.Status
		fmt.Println(status.Id, status.State, status.StartedAt, status.FinishedAt, status.ExitCode)
	}
	return nil
}
