// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// View is what the API server says, kept up to date by watches, so that one
// can wait for a state of the cluster without asking again and again.
// What it returns is shared: read only. Safe from any goroutine.
type View struct {
	Nodes  listers.NodeLister
	Pods   listers.PodLister
	Events listers.EventLister

	nodes   cache.SharedIndexInformer
	mutex   sync.Mutex
	changed chan struct{} // closed, and replaced, at each change
}

func newView(ctx context.Context, client kubernetes.Interface) (*View, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	v := &View{
		Nodes: core.Nodes().Lister(), Pods: core.Pods().Lister(), Events: core.Events().Lister(),
		nodes:   core.Nodes().Informer(),
		changed: make(chan struct{}),
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { v.wake() },
		UpdateFunc: func(any, any) { v.wake() },
		DeleteFunc: func(any) { v.wake() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		v.nodes, core.Pods().Informer(), core.Events().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	factory.Start(nil) // for as long as this process lives
	factory.WaitForCacheSync(ctx.Done())
	return v, ctx.Err()
}

func (v *View) wake() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	close(v.changed)
	v.changed = make(chan struct{})
}

// ErrFinal, in a condition's answer, says that waiting is no use.
var ErrFinal = errors.New("this will not change any more")

// Until returns nil as soon as the condition does. When the context ends
// first, the error holds the condition's last answer: what is still missing.
func (v *View) Until(ctx context.Context, what string, condition func() error) error {
	for {
		v.mutex.Lock()
		changed := v.changed // before the look, so that no change is missed
		v.mutex.Unlock()
		missing := condition()
		if missing == nil {
			return nil
		}
		if errors.Is(missing, ErrFinal) {
			return fmt.Errorf("waited for %s: %w", what, missing)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, missing)
		}
	}
}

// EachNode calls the function with the node as it is and with each version of
// it that follows, none left out, until the returned function is called. A
// condition of Until is asked again after each call.
func (v *View) EachNode(see func(*corev1.Node)) (stop func(), err error) {
	tell := func(object any) {
		see(object.(*corev1.Node))
		v.wake()
	}
	registration, err := v.nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, object any) { tell(object) },
	})
	return func() { _ = v.nodes.RemoveEventHandler(registration) }, err
}
