// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// Exec runs a command in a container, as `kubectl exec` does, and returns what
// it printed.
func (n *Node) Exec(ctx context.Context, pod *corev1.Pod, container string, command ...string) (string, error) {
	var stdout bytes.Buffer
	err := n.stream(ctx, pod, container, nil, &stdout, command)
	return stdout.String(), err
}

// Session is a command that runs in a container and is told when to go on. It
// ends by itself, or with its context.
type Session struct {
	in  *io.PipeWriter
	out *bufio.Reader
}

// Talk starts the command, as `kubectl exec -i` does.
func (n *Node) Talk(ctx context.Context, pod *corev1.Pod, container string, command ...string) *Session {
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	go func() {
		err := n.stream(ctx, pod, container, inRead, outWrite, command)
		outWrite.CloseWithError(err) // nil: end of file
		in.Close()
	}()
	return &Session{in: in, out: bufio.NewReader(out)}
}

// GoOn writes an empty line to the command's input, and ends that.
func (s *Session) GoOn() error {
	if _, err := io.WriteString(s.in, "\n"); err != nil {
		return err
	}
	return s.in.Close()
}

// Line reads the next line that the command prints. An error is how it ended:
// io.EOF is well.
func (s *Session) Line() (string, error) { return s.out.ReadString('\n') }

func (n *Node) stream(ctx context.Context, pod *corev1.Pod, container string, stdin io.Reader, stdout io.Writer, command []string) error {
	request := n.Client.CoreV1().RESTClient().Post().
		Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: container, Command: command, Stdin: stdin != nil, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(n.config, "GET", request.URL().String())
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: &stderr})
	if err != nil {
		return fmt.Errorf("exec %v in %s/%s: %w: %s", command, pod.Name, container, err, &stderr)
	}
	return nil
}
